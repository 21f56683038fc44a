"""Tables between groups of trials: what they reached and when, and who is likely better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.report.comparing import Improvement, reached
from rllib_conspec.report.curves import Curve
from rllib_conspec.report.groups import Group
from rllib_conspec.report.trials import SECONDS, STEPS

NOTHING = "–"


@dataclass(frozen=True)
class GroupRow:
    """One line of the table, as text."""

    label: str
    algorithm: str
    statuses: list[tuple[str, int]]
    steps: str
    time: str
    success: str
    reward: str
    steps_to: str
    time_to: str


@dataclass(frozen=True)
class Curves:
    """The curves of one group, of those of its trials that have any."""

    success: Sequence[Curve]
    reward: Sequence[Curve]
    judged_steps: Sequence[Curve]  # by which a threshold is judged
    judged_time: Sequence[Curve]


def group_row(group: Group, curves: Curves, threshold: float) -> GroupRow:
    return GroupRow(
        group.label,
        group.algorithm or NOTHING,
        Counter(t.status for t in group.trials).most_common(),
        _spread([t.last(STEPS) for t in group.trials], number),
        _spread([t.last(SECONDS) for t in group.trials], duration),
        _spread([c.values[-1] for c in curves.success], lambda v: f"{v:.2f}"),
        _spread([c.values[-1] for c in curves.reward], lambda v: f"{v:.3g}"),
        _when(curves.judged_steps, threshold, number),
        _when(curves.judged_time, threshold, duration),
    )


def improvement_rows(
    found: Mapping[tuple[str, str], Improvement],
) -> dict[str, object] | None:
    """The names, and for each the cells of its row."""
    if not found:
        return None
    names = list(dict.fromkeys(a for a, _ in found))
    rows = [(a, [_chance(found.get((a, b))) for b in names]) for a in names]
    return {"names": names, "rows": rows}


def _chance(i: Improvement | None) -> str:
    return f"{i.probability:.2f} ({i.low:.2f}–{i.high:.2f})" if i else NOTHING


def _spread(values: Sequence[float], text) -> str:
    known = np.array([v for v in values if np.isfinite(v)])
    if not len(known):
        return NOTHING
    low, middle, high = np.percentile(known, [25, 50, 75])
    if text(low) == text(high):
        return text(middle)
    return f"{text(middle)} ({text(low)}–{text(high)})"


def _when(curves: Sequence[Curve], threshold: float, text) -> str:
    if not curves:
        return NOTHING
    at = reached(curves, threshold)
    # Where all did, the median says it; otherwise also how many.
    middle = text(at.median) if np.isfinite(at.median) else "not reached"
    return middle if at.count == at.runs else f"{middle} ({at.count} of {at.runs})"


def number(value: float) -> str:
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
