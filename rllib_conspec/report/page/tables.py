"""Tables between groups of trials: what they reached and when, and who is likely better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.report.comparing import Improvement, reached
from rllib_conspec.report.curves import Curve
from rllib_conspec.report.groups import Group
from rllib_conspec.report.mattered import Sweep
from rllib_conspec.report.trials import SECONDS, STEPS

NOTHING = "–"


Cell = tuple[str, str]  # what is in it, and below that how sure it is


@dataclass(frozen=True)
class GroupRow:
    """One line of the table."""

    label: str
    algorithm: str
    statuses: list[tuple[str, int]]
    cells: list[Cell]  # steps, time, success, return, steps and time to the threshold


@dataclass(frozen=True)
class Curves:
    """The curves of one group, of those of its trials that have any."""

    success: Sequence[Curve]
    reward: Sequence[Curve]
    judged_steps: Sequence[Curve]  # by which a threshold is judged
    judged_time: Sequence[Curve]


def group_row(group: Group, curves: Curves, threshold: float) -> GroupRow:
    cells = [
        _spread([t.last(STEPS) for t in group.trials], number),
        _spread([t.last(SECONDS) for t in group.trials], duration),
        _spread([c.values[-1] for c in curves.success], lambda v: f"{v:.2f}"),
        _spread([c.values[-1] for c in curves.reward], lambda v: f"{v:.3g}"),
        _when(curves.judged_steps, threshold, number),
        _when(curves.judged_time, threshold, duration),
    ]
    statuses = Counter(t.status for t in group.trials).most_common()
    return GroupRow(group.label, group.algorithm or NOTHING, statuses, cells)


def improvement_rows(
    found: Mapping[tuple[str, str], Improvement],
) -> dict[str, object] | None:
    """The names, and for each the cells of its row."""
    if not found:
        return None
    names = list(dict.fromkeys(a for a, _ in found))
    rows = [(a, [_chance(found.get((a, b))) for b in names]) for a in names]
    return {"names": names, "rows": rows}


def mattered_rows(sweep: Sweep) -> list[dict[str, str]]:
    """A line for every value, the most important first."""
    best, axes = sweep.order[0], {axis.name: axis for axis in sweep.axes}
    return [
        {
            "name": name,
            "importance": f"{share:.2f}",
            "best": axes[name].text(best),
            "span": ", ".join(axes[name].choices) or " – ".join(axes[name].ends),
        }
        for name, share in sweep.importance.items()
    ]


def _chance(i: Improvement | None) -> Cell:
    return (f"{i.probability:.2f}", f"{i.low:.2f}–{i.high:.2f}") if i else (NOTHING, "")


def _spread(values: Sequence[float], text: Callable[[float], str]) -> Cell:
    """The median, and the quartiles where they differ from it."""
    known = [v for v in values if np.isfinite(v)]
    if not known:
        return NOTHING, ""
    low, middle, high = (text(v) for v in np.percentile(known, [25, 50, 75]))
    return middle, "" if low == middle == high else f"{low}–{high}"


def _when(curves: Sequence[Curve], threshold: float, text: Callable[[float], str]) -> Cell:
    if not curves:
        return NOTHING, ""
    at = reached(curves, threshold)
    middle = text(at.median) if np.isfinite(at.median) else "not reached"
    return middle, "" if at.count in (0, at.runs) else f"by {at.count} of {at.runs}"


def number(value: float) -> str:
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
