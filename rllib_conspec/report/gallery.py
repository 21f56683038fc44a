"""One picture of many moments: for every row, when they happen and what is seen then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from rllib_conspec.report.components import components, name_of
from rllib_conspec.report.pictures import to_picture
from rllib_conspec.reward_models.base import Moment, Row

SHOWN = 6  # moments shown of each row
BARS = 10  # components shown of a vector
BINS = 60  # of the histogram, where episodes are longer than that


def draw_gallery(
    rows: Sequence[Row],
    path: str | Path,
    title: str = "",
    *,
    renders: Mapping[tuple, np.ndarray] | None = None,
    channels: str | None = None,
    names: Sequence[str] = (),
) -> Path:
    """Write one line of pictures per row: the steps of all its moments, then the first moments.

    Args:
        renders: (episode, step) → picture. Of other moments the observation is shown.
        channels: Of observations that are pictures: first or last; None: unknown.
        names: Of the components of observations that are vectors.
    """
    count = max(1, len(rows))
    figure, axes = plt.subplots(
        count,
        SHOWN + 1,
        figsize=(1.6 * (SHOWN + 2), 1.7 * count + 0.6),
        squeeze=False,
        layout="constrained",  # labels beside one axis take no room from the others
        gridspec_kw={"width_ratios": [2.2] + [1] * SHOWN},
    )
    last = max((m.step for row in rows for m in row.moments), default=0) + 1
    for row, (first, *others) in zip(rows, axes, strict=False):
        _draw_steps(first, row, last)
        shown = row.moments[:SHOWN]
        for axis in others[len(shown) :]:
            axis.axis("off")
        pictures = [_picture(m, renders or {}, channels) for m in shown]
        for axis, moment, picture in zip(others, shown, pictures, strict=False):
            axis.set_title(f"step {moment.step}, score {moment.score:.2f}", fontsize=7)
            if picture is not None:
                axis.imshow(picture, interpolation="nearest")
                axis.axis("off")
        vectors = [(a, m) for a, m, p in zip(others, shown, pictures, strict=False) if p is None]
        if vectors:
            _draw_vectors(vectors, row.moments, names)
    figure.suptitle(title)
    path = Path(path)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _picture(moment: Moment, renders: Mapping, channels: str | None) -> np.ndarray | None:
    rendered = renders.get((moment.episode, moment.step))
    if rendered is not None:
        return rendered
    return to_picture(moment.episode.frames[moment.step], channels)


def _draw_steps(axis: plt.Axes, row: Row, last: int) -> None:
    edges = np.linspace(-0.5, last - 0.5, min(last, BINS) + 1)
    axis.hist([m.step for m in row.moments], bins=edges, color="tab:blue")
    axis.set_title(row.title, fontsize=9)
    axis.set_xlabel("step", fontsize=8)
    axis.set_xlim(-1, last)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.tick_params(labelsize=7)
    axis.set_yticks([])


def _draw_vectors(
    vectors: Sequence[tuple[plt.Axes, Moment]], moments: Sequence[Moment], names: Sequence[str]
) -> None:
    """Bars of the row's most unusual components, with a mark where they are on average; the same
    ones on the same scale throughout.
    """
    shown = sorted(components(moments)[:BARS], key=lambda c: c.index)
    which, usual = [c.index for c in shown], [c.usual for c in shown]
    places = range(len(shown))
    values = np.array([m.episode.frames[m.step][which] for _, m in vectors], dtype=np.float64)
    low, high = min(0.0, values.min(), *usual), max(0.0, values.max(), *usual)
    margin = 0.05 * (high - low) or 1.0
    for (axis, _), bars in zip(vectors, values, strict=True):
        axis.barh(places, bars, color="tab:orange")
        axis.plot(usual, places, "|", color="black", markersize=6)
        axis.axvline(0, color="grey", linewidth=0.5)
        axis.set_xlim(low - margin, high + margin)
        axis.set_ylim(len(shown) - 0.5, -0.5)  # the first component on top
        axis.xaxis.set_major_locator(MaxNLocator(nbins=3))
        axis.tick_params(labelsize=6)
        axis.set_yticks([])
    vectors[0][0].set_xlabel("|: average of all steps", fontsize=6)
    vectors[0][0].set_yticks(places, [name_of(i, names) for i in which], fontsize=6)
