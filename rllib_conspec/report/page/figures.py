"""Figures for plotly, written as the JSON that plotly.js reads.

Colours are numbers of series: the page puts in its own, for light and for dark. Nothing is drawn
twice: a figure that has several x-axes holds data for each, and the page changes between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_conspec.report.curves import SMOOTHING, Curve, Summary
from rllib_conspec.report.mattered import Sweep
from rllib_conspec.reward_models.base import Row, Timeline

COLOURS = 8  # series in style.css; beyond that, lines are dashed
DASHES = ("solid", "dash", "dot")
DRAWN = COLOURS * len(DASHES)  # groups that can be told apart
BEST = 5  # lines of a sweep that stand out, of a quarter at most

Figure = dict[str, Any]


def series(i: int) -> int:
    """The colour of the i-th group: 1 … COLOURS."""
    return i % COLOURS + 1


def dash(i: int) -> str:
    return DASHES[i // COLOURS % len(DASHES)]


def curves_figure(
    groups: Mapping[str, Sequence[Curve]], summary: Summary, x: str, share: bool
) -> Figure:
    """A line and a band for every group. `share`: y is between 0 and 1."""
    traces = []
    for i, (label, curves) in enumerate(groups.items()):
        if curves:
            steps, low, middle, high = summary(curves)
            traces += _band(label, i, steps, low, middle, high)
    axis = {"title": f"mean of {SMOOTHING} iterations"}
    return _figure(traces, x, axis | ({"range": [-0.02, 1.04]} if share else {}))


def row_figure(row: Row) -> Figure:
    """A row's scores over the steps of its episodes, in successes and in failures."""
    traces = []
    for i, (label, success) in enumerate((("successes", True), ("failures", False))):
        own = [t.scores for t in row.traces if t.success == success]
        if own:
            low, middle, high = np.nanpercentile(_padded(own), [25, 50, 75], axis=0)
            traces += _band(f"{label} ({len(own)})", i, np.arange(len(middle)), low, middle, high)
    return _figure(traces, "step of the episode", {"title": "score"})


def score_range(timelines: Sequence[Timeline]) -> tuple[float, float]:
    """From the lowest score in them to the highest, so that episodes can be compared."""
    every = np.concatenate([s for t in timelines for s in t.scores.values()])
    low, high = float(every.min()), float(every.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin


def timeline_figure(timeline: Timeline, range: tuple[float, float]) -> Figure:
    """All scores of one episode, their highest steps, and what the environment marked."""
    traces = []
    for i, (label, scores) in enumerate(timeline.scores.items()):
        best = int(np.argmax(scores))
        line = _line(label, i, np.arange(len(scores)), scores)
        top = {
            "x": [best],
            "y": [_number(scores[best])],
            "mode": "markers",
            "marker": {"size": 10, "symbol": "diamond"},
            "series": series(i),
            "name": f"{label}: highest",
        }
        traces += [line, top]
    for name in dict.fromkeys(name for _, name in timeline.episode.events):
        steps = [t for t, other in timeline.episode.events if other == name]
        traces.append(
            {
                "x": steps,
                "y": [1.03] * len(steps),
                "yaxis": "y2",
                "mode": "markers",
                "marker": {"symbol": "triangle-down", "size": 9},
                "name": f"event: {name}",
                "hovertemplate": f"{name}, step %{{x}}<extra></extra>",
            }
        )
    axis = {"title": "score", "range": [_number(end) for end in range]}
    figure = _figure(traces, "step of the episode", axis)
    figure["layout"]["yaxis2"] = {"overlaying": "y", "range": [0, 1.05], "visible": False}
    return figure


def metric_figure(values: Mapping[str, np.ndarray], steps: np.ndarray) -> Figure:
    """One metric while a trial learned; several lines where it has several parts."""
    traces = [_line(label, i, steps, own) for i, (label, own) in enumerate(values.items())]
    return _figure(traces, "environment steps", {"title": ""})


def sweep_figure(sweep: Sweep) -> Figure:
    """A line for every group through its values, in parallel axes, to what it reached. The best
    stand out, and are drawn last.
    """
    axes = [*sweep.axes, sweep.reached]
    places = np.stack([axis.places for axis in axes], axis=1)
    best = sweep.order[: max(1, min(BEST, len(sweep.labels) // 4))]
    traces = []
    for i in reversed(sweep.order):
        text = [f"{axis.name} {axis.text(i)}" for axis in axes]
        line = _line(sweep.labels[i], 0 if i in best else 1, np.arange(len(axes)), places[i])
        line |= {"mode": "lines+markers", "text": text, "quiet": i not in best}
        line["hovertemplate"] = f"{'<br>'.join(text)}<extra></extra>"
        traces.append(line)
    figure = _figure(traces, "", {"title": "", "range": [-0.12, 1.12], "visible": False})
    names = [axis.name for axis in axes]
    figure["layout"]["xaxis"] |= {"tickvals": [*range(len(axes))], "ticktext": names}
    figure["layout"]["xaxis"]["range"] = [-0.3, len(axes) - 0.7]
    figure["layout"]["hovermode"] = "closest"
    figure["layout"]["annotations"] = [
        {"x": x, "y": y, "text": end, "showarrow": False}
        for x, axis in enumerate(axes)
        for y, end in zip((-0.07, 1.07), axis.ends, strict=True)
    ]
    return figure


def _band(label: str, i: int, x, low, middle, high) -> list[dict[str, Any]]:
    if np.array_equal(low, high):
        return [_line(label, i, x, middle)]
    around = {
        "x": _numbers([*x, *x[::-1]]),
        "y": _numbers([*high, *low[::-1]]),
        "fill": "toself",
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "band": True,
        "series": series(i),
    }
    line = _line(label, i, x, middle)
    line["customdata"] = [list(pair) for pair in zip(_numbers(low), _numbers(high), strict=True)]
    line["hovertemplate"] = "%{y:.3g} (%{customdata[0]:.3g}–%{customdata[1]:.3g})"
    return [around, line]


def _line(label: str, i: int, x, y) -> dict[str, Any]:
    return {
        "x": _numbers(x),
        "y": _numbers(y),
        "mode": "lines",
        "line": {"width": 2, "dash": dash(i)},
        "series": series(i),
        "name": label,
        "hovertemplate": "%{y:.3g}",
    }


def _figure(traces: list[dict[str, Any]], x: str, y: dict[str, Any]) -> Figure:
    # In one trace, one point on its own is not to be seen without a marker.
    for trace in traces:
        if trace["mode"] == "lines" and len(trace["x"]) == 1:
            trace["mode"] = "lines+markers"
    y = y | {"title": {"text": y["title"]}}
    return {"data": traces, "layout": {"xaxis": {"title": {"text": x}}, "yaxis": y}}


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """[K, T] with NaN behind the ends."""
    whole = np.full((len(rows), max(map(len, rows))), np.nan)
    for own, row in zip(whole, rows, strict=True):
        own[: len(row)] = row
    return whole


def _numbers(values) -> list[float | None]:
    return [_number(v) for v in values]


def _number(value: float) -> float | None:
    """Five digits, more than a screen shows; JSON has no NaN."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
