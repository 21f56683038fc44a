"""Draw docs/images/orangetree_curves.png: every run in docs/results/orangetree as a line.

python docs/images/make_orangetree_curves.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rllib_conspec.report.curves import Curve, quartiles

PICTURE = Path(__file__).parent / "orangetree_curves.png"
RESULTS = Path(__file__).parents[1] / "results" / "orangetree"
AIM = 0.9


def read(path: Path) -> Curve:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    columns = ("steps", "success_rate_20")
    return Curve(*(np.array([float(row[name]) for row in rows]) for name in columns))


def main() -> None:
    figure, axis = plt.subplots(figsize=(7, 3.8))
    for label, name, colour in (("ConSpec", "conspec", "C0"), ("PPO", "ppo", "C1")):
        paths = sorted(RESULTS.glob(f"{name}_*.csv"))
        curves = [read(path) for path in paths]
        if not curves:
            continue
        for path, curve in zip(paths, curves, strict=True):
            axis.plot(curve.steps / 1000, curve.values, c=colour, lw=0.7, alpha=0.6)
            reached, last = curve.steps_to(AIM), curve.values[-1]
            print(f"{path.stem}: {AIM} after {reached:,.0f}; {last:.2f} at {curve.steps[-1]:,.0f}")
        steps, low, middle, high = quartiles(curves)
        axis.plot(steps / 1000, middle, c=colour, lw=2, label=f"{label} ({len(curves)} seeds)")
        axis.fill_between(steps / 1000, low, high, color=colour, alpha=0.2)
    axis.set_ylim(0, 1)
    axis.set_xlabel("thousand environment steps")
    axis.set_ylabel("success rate, mean of 20 iterations")
    axis.set_title("OrangeTree: every seed, median and quartiles")
    axis.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main()
