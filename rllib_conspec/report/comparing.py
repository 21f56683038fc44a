"""Between algorithms: interquartile means, probability of improvement, steps to a threshold.

Intervals are bootstrapped by rliable, which takes a second to import: only where it is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_conspec.report.curves import Curve, on_grid

REPEATS = 1000  # of the bootstrap
POINTS = 100  # of a curve with intervals
COMPARED = 8  # groups of which all pairs are compared


def iqm(curves: Sequence[Curve], points: int = POINTS) -> tuple[np.ndarray, ...]:
    """Steps [points]; lower end of the 95 % interval, interquartile mean, upper end."""
    grid = np.linspace(0, max(c.steps[-1] for c in curves), points)
    rows = on_grid(curves, grid)
    if len(curves) == 1:  # nothing to draw from
        return grid, rows[0], rows[0], rows[0]
    from scipy.stats import trim_mean

    middle, interval = _estimates(
        {"": rows[:, None, :]},  # [runs, tasks, points]
        lambda scores: trim_mean(scores[:, 0], 0.25, axis=0),
    )
    return grid, interval[""][0], middle[""], interval[""][1]


@dataclass(frozen=True)
class Improvement:
    """How likely a run of one group is better than one of another."""

    probability: float
    low: float  # 95 %
    high: float


def score(curve: Curve, until: float) -> float:
    """The average height of a curve up to `until` steps, which tells fast from slow and good from
    bad alike. A run that ended keeps its last value.
    """
    grid = np.linspace(0, until, 500)
    return float(on_grid([curve], grid).mean())


def probability(x: np.ndarray, y: np.ndarray) -> float:
    """That a run of x [runs, 1] scores higher than one of y; ties count half. The same number as
    rliable's `probability_of_improvement`, whose rank test takes a hundred times as long: too long
    to be repeated a thousand times for every pair.
    """
    return float(np.mean((x > y.T) + 0.5 * (x == y.T)))


def improvements(
    groups: Mapping[str, Sequence[Curve]],
) -> dict[tuple[str, str], Improvement]:
    """(a, b) → how likely a run of a scores higher than one of b, of all pairs of the first few
    groups with at least two runs each. Ties count half.
    """
    several = {name: own for name, own in groups.items() if len(own) > 1}
    names = list(several)[:COMPARED]
    if len(names) < 2:
        return {}
    until = max(c.steps[-1] for name in names for c in several[name])
    scores = {name: np.array([[score(c, until)] for c in several[name]]) for name in names}
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    found, intervals = _estimates(
        {pair: (scores[pair[0]], scores[pair[1]]) for pair in pairs}, probability
    )
    result = {}
    for a, b in pairs:
        middle = float(np.squeeze(found[a, b]))
        low, high = (float(v) for v in np.squeeze(intervals[a, b]))
        result[a, b] = Improvement(middle, low, high)
        result[b, a] = Improvement(1 - middle, 1 - high, 1 - low)
    return result


def _estimates(scores: Mapping[Any, Any], function: Callable) -> tuple[dict, dict]:
    """What `function` gives of the scores of every key, and its 95 % interval."""
    from rliable.library import get_interval_estimates

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of arch, about the generator it is given
        return get_interval_estimates(
            scores, function, reps=REPEATS, random_state=np.random.RandomState(0)
        )


@dataclass(frozen=True)
class Reached:
    """When the runs of a group first reached a threshold."""

    median: float  # inf: less than half of them did
    count: int  # that did
    runs: int


def reached(curves: Sequence[Curve], threshold: float) -> Reached:
    at = np.array([c.steps_to(threshold) for c in curves])
    # The lower of the two in the middle: no mean with infinity.
    median = float(np.sort(at)[(len(at) - 1) // 2]) if len(at) else float("inf")
    return Reached(median, int(np.isfinite(at).sum()), len(at))
