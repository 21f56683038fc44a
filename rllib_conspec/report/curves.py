"""Learning curves: median and quartiles over seeds, from the `result.json` of each run.

python -m rllib_conspec.report.curves OUT.png "mine=results/keys2*" "PPO=results/keys2_ppo*"
python -m rllib_conspec.report.curves --return OUT.png "mine=results/hopper*" …

Of success rates, or with --return of returns, where success is relative to a batch.
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rllib_conspec.report.trials import SECONDS, STEPS, Trial, read_trial

SMOOTHING = 20  # iterations in the running mean, as in "mean of the last 20 iterations"
SUCCESS = ("env_runners", "success_rate")
RETURN = ("env_runners", "episode_return_mean")
# Curves of a group → steps, low, middle and high.
Summary = Callable[[Sequence["Curve"]], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Curve:
    """One run: success rate (or another metric) against environment steps, or seconds."""

    steps: np.ndarray
    values: np.ndarray  # running mean

    def steps_to(self, level: float) -> float:
        """Steps at which the running mean first reaches `level`; inf if it never does."""
        reached = np.flatnonzero(self.values >= level)
        return float(self.steps[reached[0]]) if len(reached) else float("inf")


def read_curve(path: str | Path, metric: Sequence[str] = SUCCESS) -> Curve:
    """The curve of one run from its `result.json` (one JSON object per iteration)."""
    trial = read_trial(Path(path).parent, (STEPS, "/".join(metric)))
    return curve_of(trial, metric)


def curve_of(trial: Trial, metric: Sequence[str] = SUCCESS, against: str = STEPS) -> Curve:
    """The curve of a trial that was read with the columns of `metric` and `against` (STEPS or
    SECONDS). Rows in which one of them is missing are left out.
    """
    x, y = trial.columns[against], trial.columns["/".join(metric)]
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    total = np.cumsum(np.concatenate([[0.0], y]))
    begin = np.maximum(np.arange(1, len(total)) - SMOOTHING, 0)
    count = np.arange(1, len(total)) - begin
    # A success rate over fewer iterations than asked for is not yet one: it starts low.
    mean = (total[1:] - total[begin]) / np.maximum(count, SMOOTHING if metric == SUCCESS else 1)
    return Curve(x, mean)


def read_runs(pattern: str, metric: Sequence[str] = SUCCESS) -> list[Curve]:
    """The curves of all runs below the directories that match `pattern`, without those in which
    the metric was never measured (success may be relative to a batch).
    """
    files = {f for d in glob.glob(pattern) for f in Path(d).rglob("result.json")}
    curves = [read_curve(f, metric) for f in sorted(files)]
    return [curve for curve in curves if len(curve.steps)]


def on_grid(curves: Sequence[Curve], grid: np.ndarray) -> np.ndarray:
    """Values [curves, points] at the steps `grid` [points].

    A run that stopped early because it was solved keeps its last value.
    """
    return np.array([np.interp(grid, c.steps, c.values) for c in curves])


def quartiles(curves: Sequence[Curve], points: int = 200) -> tuple[np.ndarray, ...]:
    """Steps [points] and lower quartile, median, upper quartile over the curves."""
    grid = np.linspace(0, max(c.steps[-1] for c in curves), points)
    return (grid, *np.percentile(on_grid(curves, grid), [25, 50, 75], axis=0))


def draw_curves(
    groups: Mapping[str, Sequence[Curve]],
    path: str | Path,
    title: str = "",
    metric: Sequence[str] = SUCCESS,
    against: str = STEPS,
    summary: Summary = quartiles,
) -> Path:
    """One line and band per group: median and quartiles, or what another summary gives."""
    figure, axis = plt.subplots(figsize=(6.4, 4))
    for label, curves in groups.items():
        steps, low, middle, high = summary(curves)
        (line,) = axis.plot(steps, middle, label=f"{label} ({len(curves)} seeds)")
        axis.fill_between(steps, low, high, color=line.get_color(), alpha=0.25)
    axis.set_xlabel("seconds" if against == SECONDS else "environment steps")
    name = "success rate" if metric == SUCCESS else "return"
    axis.set_ylabel(f"{name}, mean of {SMOOTHING} iterations")
    if metric == SUCCESS:
        axis.set_ylim(-0.02, 1.02)
    axis.legend()
    axis.set_title(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return Path(path)


def main(arguments: Sequence[str]) -> int:
    metric = RETURN if "--return" in arguments else SUCCESS
    arguments = [a for a in arguments if a != "--return"]
    if len(arguments) < 2 or any("=" not in a for a in arguments[1:]):
        print(__doc__)
        return 2
    groups = {}
    for argument in arguments[1:]:
        label, _, pattern = argument.partition("=")
        groups[label] = read_runs(pattern, metric)
        if not groups[label]:
            what = "success rates" if metric == SUCCESS else "returns"
            print(f"curves: no result.json with {what} below {pattern}", file=sys.stderr)
            return 2
        print(f"{label}: {_in_words(groups[label], metric)}")
    print(draw_curves(groups, arguments[0], Path(arguments[0]).stem, metric))
    return 0


def _in_words(curves: Sequence[Curve], metric: Sequence[str]) -> str:
    if metric == SUCCESS:
        return "steps to 0.9: " + ", ".join(f"{c.steps_to(0.9):,.0f}" for c in curves)
    ends = ", ".join(f"{c.values[-1]:,.1f} after {c.steps[-1]:,.0f} steps" for c in curves)
    return f"return at the end: {ends}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
