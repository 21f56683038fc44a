"""Draw docs/images/backbones.png from docs/results/backbones, and print the table of the page.

python docs/images/make_backbones.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "backbones.png"
RESULTS = Path(__file__).parents[1] / "results" / "backbones"
KEYS = {"PPO": "keys1", "APPO": "appo_keys1", "IMPALA": "impala_keys1", "DQN": "dqn_keys1"}
HOPPER = {"SAC with ConSpec": "sac_hopper", "SAC alone": "sac_hopper_alone"}
AIM = 0.9


def read(name: str) -> dict[int, list[dict[str, float]]]:
    """Rows of every seed's run."""
    found = {}
    for path in sorted(RESULTS.glob(f"{name}_[0-9].csv")):
        with path.open() as file:
            rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
        found[int(path.stem[-1])] = rows
    return found


def told(rows: list[dict[str, float]]) -> str:
    """What became of a run, as cells of the page's table."""

    def first(name: str) -> str:
        return next((f"{i + 1}" for i, row in enumerate(rows) if row[name] > 0), "–")

    last = rows[-1]
    reached = f"{last['steps']:,.0f}" if last["success_rate_20"] >= AIM else "not reached"
    whole = max(last["iteration"], 1e-9)
    return " | ".join(
        [
            reached,
            f"{last['cpu_seconds']:.0f} / {last['seconds']:.0f}",
            f"{last['reward_model'] / whole:.0%}",
            f"{(last['score'] + last['replay']) / whole:.1%}",
            first("frozen"),
            first("intrinsic_return"),
            f"{max(row['intrinsic_return'] for row in rows):.2f}",
            f"{last['steps']:,.0f}",
        ]
    )


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for axis, names, column in (
        (left, KEYS, "success_rate_20"),
        (right, HOPPER, "return"),
    ):
        for i, (label, name) in enumerate(names.items()):
            for seed, rows in read(name).items():
                steps = [row["steps"] / 1000 for row in rows]
                values = [row[column] for row in rows]
                axis.plot(steps, values, c=f"C{i}", lw=1, label=label if seed == 0 else None)
                print(f"{label}, seed {seed} | {told(rows)}")
        axis.set_xlabel("thousand environment steps")
        axis.legend()
    left.set_ylabel("success rate, mean of 20 iterations")
    left.set_title("1 key")
    right.set_ylabel("return, mean of an iteration's episodes")
    right.set_title("Hopper, delayed")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main()
