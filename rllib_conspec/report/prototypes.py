"""Picture of the prototypes (paper Fig. 4b): the frames that each one matches best, and when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rllib_conspec.report.found import Found

FRAMES = 6  # shown of each prototype


def draw_prototypes(found: Sequence[Found], path: str | Path, title: str = "") -> Path:
    """Write one row per prototype: its match times, then the frames of its best matches."""
    rows = max(1, len(found))
    figure, axes = plt.subplots(
        rows,
        FRAMES + 1,
        figsize=(1.6 * (FRAMES + 2), 1.7 * rows + 0.6),
        squeeze=False,
        gridspec_kw={"width_ratios": [2.2] + [1] * FRAMES},
    )
    last = max((int(f.steps.max()) for f in found), default=0) + 1
    for f, row in zip(found, axes, strict=False):
        row[0].hist(f.steps, bins=np.arange(last + 1) - 0.5, color="tab:blue")
        row[0].set_title(f"prototype {f.prototype}" + (f": {f.name}" if f.name else ""), fontsize=9)
        row[0].set_xlabel("step of best match", fontsize=8)
        row[0].set_xlim(-1, last)
        row[0].tick_params(labelsize=7)
        row[0].set_yticks([])
        for k, axis in zip(_varied(f), row[1:], strict=False):
            _show(axis, f.frames[k])
            axis.set_title(f"t={f.steps[k]}  {f.scores[k]:.2f}", fontsize=7)
        for axis in row[1:]:
            axis.axis("off")
    figure.suptitle(title or "Frames that the prototypes match best, in successful episodes")
    figure.tight_layout()
    path = Path(path)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _varied(found: Found) -> list[int]:
    """Best matches first, each different frame once, then repeats."""
    order = np.argsort(-found.scores, kind="stable")
    seen: set[bytes] = set()
    different, repeated = [], []
    for k in order:
        digest = found.frames[k].tobytes()
        (repeated if digest in seen else different).append(int(k))
        seen.add(digest)
    return (different + repeated)[:FRAMES]


def _show(axis: plt.Axes, frame: np.ndarray) -> None:
    if frame.ndim == 3 and frame.shape[-1] in (1, 3):
        axis.imshow(frame, interpolation="nearest")
    else:  # an observation that is no picture: its values
        axis.bar(np.arange(frame.size), frame.ravel())
