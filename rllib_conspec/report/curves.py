"""Learning curves: median and quartiles over seeds, from the `result.json` of each run.

python -m rllib_conspec.report.curves OUT.png "mine=results/keys2*" "PPO=results/keys2_ppo*"
"""

from __future__ import annotations

import glob
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SMOOTHING = 20  # iterations in the running mean, as in "mean of the last 20 iterations"


@dataclass(frozen=True)
class Curve:
    """One run: success rate (or another metric) against environment steps."""

    steps: np.ndarray
    values: np.ndarray  # running mean

    def steps_to(self, level: float) -> float:
        """Steps at which the running mean first reaches `level`; inf if it never does."""
        reached = np.flatnonzero(self.values >= level)
        return float(self.steps[reached[0]]) if len(reached) else float("inf")


def read_curve(path: str | Path, metric: Sequence[str] = ("env_runners", "success_rate")) -> Curve:
    """The curve of one run from its `result.json` (one JSON object per iteration)."""
    steps, values = [], []
    for line in Path(path).read_text().splitlines():
        result = json.loads(line)
        value = result
        for key in metric:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        if isinstance(value, (int, float)):
            steps.append(result["num_env_steps_sampled_lifetime"])
            values.append(value)
    total = np.cumsum(np.concatenate([[0.0], values]))
    begin = np.maximum(np.arange(1, len(total)) - SMOOTHING, 0)
    count = np.arange(1, len(total)) - begin
    # A mean of fewer iterations than asked for is not yet one: it starts low.
    mean = (total[1:] - total[begin]) / np.maximum(count, SMOOTHING)
    return Curve(np.array(steps, dtype=float), mean)


def read_runs(pattern: str) -> list[Curve]:
    """The curves of all runs below the directories that match `pattern`, without those in which
    success was never measured (it may be relative to a batch).
    """
    files = {f for d in glob.glob(pattern) for f in Path(d).rglob("result.json")}
    curves = [read_curve(f) for f in sorted(files)]
    return [curve for curve in curves if len(curve.steps)]


def quartiles(curves: Sequence[Curve], points: int = 200) -> tuple[np.ndarray, ...]:
    """Steps [points] and lower quartile, median, upper quartile over the curves.

    A run that stopped early because it was solved keeps its last value.
    """
    grid = np.linspace(0, max(c.steps[-1] for c in curves), points)
    rows = np.array([np.interp(grid, c.steps, c.values, left=0.0) for c in curves])
    return (grid, *np.percentile(rows, [25, 50, 75], axis=0))


def draw_curves(groups: Mapping[str, Sequence[Curve]], path: str | Path, title: str = "") -> Path:
    """One line (median) and band (quartiles) per group."""
    figure, axis = plt.subplots(figsize=(6.4, 4))
    for label, curves in groups.items():
        steps, low, middle, high = quartiles(curves)
        (line,) = axis.plot(steps, middle, label=f"{label} ({len(curves)} seeds)")
        axis.fill_between(steps, low, high, color=line.get_color(), alpha=0.25)
    axis.set_xlabel("environment steps")
    axis.set_ylabel(f"success rate, mean of {SMOOTHING} iterations")
    axis.set_ylim(-0.02, 1.02)
    axis.legend()
    axis.set_title(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return Path(path)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2 or any("=" not in a for a in arguments[1:]):
        print(__doc__)
        return 2
    groups = {}
    for argument in arguments[1:]:
        label, _, pattern = argument.partition("=")
        groups[label] = read_runs(pattern)
        if not groups[label]:
            print(f"curves: no result.json with success rates below {pattern}", file=sys.stderr)
            return 2
        reached = ", ".join(f"{c.steps_to(0.9):,.0f}" for c in groups[label])
        print(f"{label}: steps to 0.9: {reached}")
    print(draw_curves(groups, arguments[0], title=Path(arguments[0]).stem))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
