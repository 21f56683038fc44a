"""Draw docs/images/keys_curves.png from the runs of docs/keys.md.

python docs/images/make_curves.py results
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rllib_conspec.report.curves import quartiles, read_runs

PICTURE = Path(__file__).parent / "keys_curves.png"


def main(results: str) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    for keys, axis in zip((1, 2, 3), axes, strict=True):
        for label, name in (("ConSpec", f"keys{keys}"), ("PPO", f"keys{keys}_ppo")):
            curves = read_runs(f"{results}/{name}")
            if not curves:
                continue
            steps, low, middle, high = quartiles(curves)
            steps = steps / 1000
            (line,) = axis.plot(steps, middle, label=f"{label} ({len(curves)} seeds)")
            axis.fill_between(steps, low, high, color=line.get_color(), alpha=0.25)
            reached = ", ".join(f"{c.steps_to(0.9):,.0f}" for c in curves)
            print(f"{keys} keys, {label}: steps to 0.9: {reached}")
        axis.set_title(f"{keys} key{'s' if keys > 1 else ''}")
        axis.set_xlabel("thousand environment steps")
        axis.legend(loc="center right")
    axes[0].set_ylabel("success rate, mean of 20 iterations")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main(sys.argv[1])
