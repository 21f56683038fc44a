"""The figure: a panel for each task, a line (median) and a band (quartiles) for each system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from rllib_conspec.report.curves import SMOOTHING, SUCCESS, quartiles
from rllib_conspec.reproduce.expectations import Outcomes
from rllib_conspec.reproduce.figure import Figure, Line

PER_ROW = 4


def draw(figure: Figure, lines: Sequence[Line], outcomes: Outcomes, path: Path) -> Path:
    panels = list(dict.fromkeys(line.panel for line in lines))
    labels = list(dict.fromkeys(line.label for line in lines))
    across = min(len(panels), PER_ROW)
    down = -(-len(panels) // PER_ROW)
    picture, grid = plt.subplots(
        down,
        across,
        figsize=(1.4 + 3.6 * across, 3.6 * down),
        squeeze=False,
        sharey=_shared(figure),
    )
    for axis, panel in zip(grid.flat, panels, strict=False):
        for line in lines:
            if line.panel == panel:
                _line(axis, line, outcomes, f"C{labels.index(line.label)}")
        axis.set_title(panel)
        axis.set_xlabel("thousand environment steps")
        if figure.threshold is not None:
            axis.axhline(figure.threshold, color="0.6", linewidth=0.8, linestyle=":")
            axis.set_ylim(-0.02, 1.02)
        if axis.has_data() and axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    for axis in grid.flat[len(panels) :]:
        axis.set_visible(False)
    measured = "success rate" if figure.metric == SUCCESS else "return"
    for axis in grid[:, 0]:
        axis.set_ylabel(f"{measured}, mean of {SMOOTHING} iterations")
    picture.tight_layout()
    picture.savefig(path, dpi=110)
    plt.close(picture)
    return path


def _shared(figure: Figure) -> bool:
    return figure.threshold is not None  # returns of different games have scales of their own


def _line(axis: Axes, line: Line, outcomes: Outcomes, color: str) -> None:
    curves = [outcome.curve for outcome in outcomes.get(line.key, ())]
    if not curves:
        return
    steps, low, middle, high = quartiles(curves)
    seeds = f"{len(curves)} seed" + ("" if len(curves) == 1 else "s")
    axis.plot(steps / 1000, middle, color=color, label=f"{line.label} ({seeds})")
    axis.fill_between(steps / 1000, low, high, color=color, alpha=0.25)
