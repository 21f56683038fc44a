"""Draw docs/images/backbones.png from docs/results/backbones, and print the table of the page.

python docs/images/make_backbones.py
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "backbones.png"
RESULTS = Path(__file__).parents[1] / "results"
KEYS = {
    "PPO": "keys_repeats/keys1_once",
    "APPO": "backbones/appo_keys1",
    "IMPALA": "backbones/impala_keys1",
    "DQN": "backbones/dqn_keys1",
}
HOPPER = {
    "SAC with ConSpec": "backbones/sac_hopper",
    "SAC alone": "backbones/sac_hopper_alone",
}
AIM = 0.9
NOTHING = "–"


def read(name: str) -> dict[int, list[dict[str, float]]]:
    """Rows of every seed's run."""
    found = {}
    for path in sorted(RESULTS.glob(f"{name}_[0-9].csv")):
        with path.open() as file:
            rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
        found[int(path.stem[-1])] = rows
    return found


def told(rows: list[dict[str, float]]) -> str:
    """What became of a run, as cells of the page's table: steps to the aim, CPU seconds and
    seconds until then, ConSpec's share of the time to learn and to pay, iterations of the first
    frozen prototype and the first pay, and the most that an iteration's episodes were paid.
    """

    def first(name: str) -> str:
        return next((f"{i + 1}" for i, row in enumerate(rows) if row[name] > 0), NOTHING)

    end = next((row for row in rows if row["success_rate_20"] >= AIM), None)
    reached = f"{end['steps']:,.0f}" if end else f"not after {rows[-1]['steps']:,.0f}"
    end = end or rows[-1]

    def number(name: str) -> str:
        return f"{end[name]:.0f}" if name in end else NOTHING

    def share(*names: str) -> str:
        part = sum(end.get(name, math.nan) for name in names) / end.get("iteration", math.nan)
        return NOTHING if math.isnan(part) else f"{part:.1%}"

    paid = f"{max(row['intrinsic_return'] for row in rows):.2f}"
    return " | ".join(
        [
            reached,
            number("cpu_seconds"),
            number("seconds"),
            share("reward_model"),
            share("score", "replay"),
            first("frozen"),
            first("intrinsic_return"),
            paid,
        ]
    )


def draw(axis: plt.Axes, runs: dict[str, dict], column: str) -> None:
    for i, (label, seeds) in enumerate(runs.items()):
        for seed, rows in seeds.items():
            steps = [row["steps"] / 1000 for row in rows]
            values = [row[column] for row in rows]
            axis.plot(steps, values, c=f"C{i}", lw=1, label=label if seed == 0 else None)
            print(f"| {label}, seed {seed} | {told(rows)} |")
    axis.set_xlabel("thousand environment steps")
    axis.legend()


def main() -> None:
    keys, hopper = ({n: read(path) for n, path in of.items()} for of in (KEYS, HOPPER))
    panels = 1 + any(hopper.values())
    figure, axes = plt.subplots(1, panels, figsize=(5.5 * panels, 3.6), squeeze=False)
    draw(axes[0, 0], keys, "success_rate_20")
    axes[0, 0].set_ylabel("success rate, mean of 20 iterations")
    axes[0, 0].set_title("1 key")
    if panels > 1:
        draw(axes[0, 1], hopper, "return")
        axes[0, 1].set_ylabel("return, mean of an iteration's episodes")
        axes[0, 1].set_title("Hopper with delayed reward")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main()
