"""Draw docs/images/orangetree_curves.png: every run of docs/orangetree.md as a line of its own.

python docs/images/make_orangetree_curves.py results
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rllib_conspec.report.curves import read_runs

PICTURE = Path(__file__).parent / "orangetree_curves.png"


def main(results: str) -> None:
    figure, axis = plt.subplots(figsize=(7, 3.8))
    for label, name, colour in (
        ("ConSpec", "orangetree_inprocess", "C0"),
        ("PPO", "orangetree_ppo", "C1"),
    ):
        for seed, curve in enumerate(read_runs(f"{results}/{name}")):
            style = ("-", "--", ":")[seed % 3]
            axis.plot(curve.steps / 1000, curve.values, style, c=colour, label=f"{label} {seed}")
            last, steps = curve.values[-1], curve.steps[-1]
            print(f"{label}, seed {seed}: {last:.2f} after {steps:,.0f} steps")
    axis.set_ylim(0, 1)
    axis.set_xlabel("thousand environment steps")
    axis.set_ylabel("success rate, mean of 20 iterations")
    axis.set_title("OrangeTree, one line a seed")
    axis.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main(sys.argv[1])
