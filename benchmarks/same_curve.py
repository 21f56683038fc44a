"""Same seed, same curve: 30 iterations against what is kept in docs/results/same_curve/.

Compares every number to the digit and prints the first iteration that differs (`differs_keys1:
none`). Sums of floats come out alike on one kind of processor only: on another, or after a change
that is meant to change the curve, write the files anew with --write.

Takes about 3 minutes.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from runs import build, experiment, start_ray

FILES = {"keys1": "keys1", "orangetree": "orangetree_inprocess"}
KEPT = Path(__file__).parents[1] / "docs" / "results" / "same_curve"
ITERATIONS = 30
METRICS = {
    "return": ("env_runners", "episode_return_mean"),
    "length": ("env_runners", "episode_len_mean"),
    "success": ("env_runners", "success_rate"),
    "intrinsic": ("env_runners", "intrinsic_return_mean"),
    "policy_loss": ("learners", "default_policy", "total_loss"),
    "entropy": ("learners", "default_policy", "entropy"),
    "gradient": ("learners", "default_policy", "gradients_default_optimizer_global_norm"),
    "loss": ("conspec", "loss"),
    "frozen": ("conspec", "frozen"),
}


def curve(name: str) -> list[list[str]]:
    """Rows of text, one per iteration."""
    algorithm = build(experiment(FILES[name]), conspec=True)
    rows = []
    for _ in range(ITERATIONS):
        result = algorithm.train()
        row = []
        for path in METRICS.values():
            value = result
            for key in path:
                value = value.get(key, {}) if isinstance(value, dict) else {}
            row.append("" if isinstance(value, dict) else repr(float(value)))
        rows.append(row)
    algorithm.stop()
    return rows


def main() -> int:
    start_ray()
    differs = False
    for name in FILES:
        rows, file = curve(name), KEPT / f"{name}.csv"
        if "--write" in sys.argv:
            with file.open("w", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows([list(METRICS), *rows])
        kept = list(csv.reader(file.open()))[1:]
        first = next((i for i, (a, b) in enumerate(zip(rows, kept, strict=True)) if a != b), None)
        differs |= first is not None
        print(f"differs_{name}: {'none' if first is None else f'iteration {first + 1}'}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
