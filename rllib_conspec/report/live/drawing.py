"""What a checkpoint's reward models found, as one JSON object on the standard output.

A process of its own does this: it imports torch, Ray and the run's environment, takes seconds, and
may break, while the page goes on.

python -m rllib_conspec.report.live.drawing CHECKPOINT
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rllib_conspec.errors import UserError
from rllib_conspec.report.checkpoint import NoRewardModel, read_config, read_models
from rllib_conspec.report.components import in_words
from rllib_conspec.report.pictures import to_picture
from rllib_conspec.report.replay import Renders, renders
from rllib_conspec.reward_models.base import Moment, Row

SHOWN = 6  # moments of each row
NICE = 10  # the run that is watched comes first


def draw(checkpoint: str | Path) -> dict[str, Any]:
    """{lines, galleries: [{title, rows: [{title, text, frames: [{png, caption}]}]}], notes}; PNGs
    in base64.
    """
    try:
        models = read_models(checkpoint)
    except NoRewardModel:
        return {"lines": [], "galleries": [], "notes": []}
    config = read_config(checkpoint)
    told: dict[str, Any] = {"lines": [], "galleries": [], "notes": []}
    for model, state in models:
        try:
            description = model.describe(state)
        except Exception as error:  # whatever somebody's model raises
            told["notes"].append(
                f"{model.name} cannot be described: {type(error).__name__}: {error}"
            )
            continue
        lines = list(description.lines)
        for name, rows in description.galleries.items():
            pictures, trouble = renders(config, [m for row in rows for m in row.moments[:SHOWN]])
            if trouble:
                told["notes"].append(f"{name}: observations are shown: {trouble}")
            drawn = [_row(row, lines, pictures, config) for row in rows]
            told["galleries"].append({"title": f"{model.name}: {name}", "rows": drawn})
        told["lines"] += lines
    return told


def _row(row: Row, lines: list[str], pictures: Renders, config: Any) -> dict[str, Any]:
    """One row; the line that speaks of it is taken out of `lines`."""
    facts = getattr(config, "facts", None)
    begins = re.compile(re.escape(row.title.partition(":")[0]) + r"\b:?\s*")
    own = next((line for line in lines if begins.match(line)), None)
    if own is not None:
        lines.remove(own)
    text = begins.sub("", own, count=1) if own else _steps(row)
    if row.moments and row.moments[0].episode.observations.ndim == 2:
        words = in_words(row.moments, facts.observation_names if facts else ())
        text = "; ".join(part for part in (text, words) if part)
    frames = [
        {"png": _png(picture), "caption": f"step {m.step}, match {m.score:.2f}"}
        for m in row.moments[:SHOWN]
        if (picture := _picture(m, pictures, facts.channels if facts else None)) is not None
    ]
    return {"title": row.title, "text": text, "frames": frames}


def _picture(moment: Moment, pictures: Renders, channels: str | None) -> np.ndarray | None:
    drawn = pictures.get((moment.episode, moment.step))
    return to_picture(moment.episode.frames[moment.step], channels) if drawn is None else drawn


def _steps(row: Row) -> str:
    if not row.moments:
        return ""
    low, middle, high = np.percentile([m.step for m in row.moments], [25, 50, 75]).astype(int)
    return f"step {middle} ({low}–{high})"


def _png(picture: np.ndarray) -> str:
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture, dtype=np.uint8)).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def main(arguments: Sequence[str]) -> int:
    os.nice(NICE)
    # Whatever a user's modules print must not come between.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        told = draw(arguments[0])
    except UserError as error:
        told = {"error": " ".join(str(error).split())}
    with answer:
        json.dump(told, answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
