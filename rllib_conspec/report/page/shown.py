"""What reward models describe, as the page shows it: galleries, scores, one episode as a timeline.

Models are asked through their seam alone; what they call their rows is shown as it is.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rllib_conspec.errors import UserError
from rllib_conspec.report.checkpoint import NoRewardModel
from rllib_conspec.report.components import in_words
from rllib_conspec.report.found import Described, described
from rllib_conspec.report.page.figures import Figure, row_figure, score_range, timeline_figure
from rllib_conspec.report.pictures import to_picture
from rllib_conspec.report.replay import renders
from rllib_conspec.report.trials import Trial
from rllib_conspec.reward_models.base import Description, Moment, Timeline

FRAMES = 6  # of a row
SMALLEST = 160  # pixels: smaller pictures are enlarged, so that saved ones are of use, too


@dataclass(frozen=True)
class Frame:
    """One picture, or words where there is none."""

    image: str  # a data: address, or ""
    caption: str
    words: str = ""


@dataclass(frozen=True)
class ShownRow:
    title: str
    facts: Mapping[str, str]
    words: str  # what is unusual at its moments, where observations are vectors
    frames: list[Frame]
    figure: Figure | None


@dataclass(frozen=True)
class ShownTimeline:
    title: str
    figure: Figure
    frames: list[Frame]
    events: list[str]  # names of what the environment marked


@dataclass(frozen=True)
class ShownModel:
    name: str
    lines: Sequence[str]
    galleries: Mapping[str, list[ShownRow]]
    timelines: list[ShownTimeline]


@dataclass(frozen=True)
class ShownTrial:
    """What the models of one trial found, from its newest whole checkpoint."""

    trial: Trial
    checkpoint: str  # its name, or ""
    models: list[ShownModel] = field(default_factory=list)
    trouble: str = ""  # why there is nothing, or no picture of the environment's own
    described: Described | None = None
    pictures: Mapping = field(default_factory=dict)  # (episode, step) → as the environment shows it
    silent: bool = False  # a run without reward models


def show_trial(trial: Trial) -> ShownTrial:
    """Ask the newest checkpoint that can be read. Never raises for what a run left half done."""
    trouble = "no checkpoint yet" if not trial.checkpoints else ""
    for checkpoint in trial.checkpoints:
        try:
            found = described(checkpoint)
        except NoRewardModel:
            return ShownTrial(trial, checkpoint.name, silent=True)
        except UserError as error:
            trouble = trouble or _without(str(error), checkpoint)
            continue
        moments = [m for _, d in found.models for m in _moments(d)]
        pictures, no_picture = renders(found.config, moments) if moments else ({}, "")
        models = [
            ShownModel(
                model.name,
                d.lines,
                {
                    gallery: [_row(row, found, pictures) for row in rows]
                    for gallery, rows in d.galleries.items()
                },
                _timelines(d.timelines, found, pictures),
            )
            for model, d in found.models
        ]
        why = f"frames are observations: {no_picture}" if no_picture else ""
        return ShownTrial(trial, checkpoint.name, models, why, found, pictures)
    return ShownTrial(trial, "", trouble=trouble)


def _without(text: str, checkpoint: Path) -> str:
    return text.removeprefix(f"{checkpoint}: ")


def _moments(description: Description) -> list[Moment]:
    rows = [row for rows in description.galleries.values() for row in rows]
    of_rows = [m for row in rows for m in row.moments[:FRAMES]]
    return of_rows + [m for t in description.timelines for _, m in _critical(t)]


def _critical(timeline: Timeline) -> list[tuple[str, Moment]]:
    """The highest step of every score, in the order of the steps."""
    found = []
    for title, scores in timeline.scores.items():
        step = int(np.argmax(scores))
        found.append((title, Moment(timeline.episode, step, float(scores[step]))))
    return sorted(found, key=lambda pair: pair[1].step)


def _row(row: Any, found: Described, pictures: Mapping) -> ShownRow:
    vectors = bool(row.moments) and row.moments[0].episode.observations.ndim == 2
    return ShownRow(
        row.title,
        row.facts,
        in_words(row.moments, found.names) if vectors else "",
        [_frame(m, found, pictures) for m in row.moments[:FRAMES]],
        row_figure(row) if row.traces else None,
    )


def _timelines(
    timelines: Sequence[Timeline], found: Described, pictures: Mapping
) -> list[ShownTimeline]:
    return [
        ShownTimeline(
            t.title,
            timeline_figure(t, score_range(timelines)),
            [_frame(m, found, pictures, title) for title, m in _critical(t)],
            list(dict.fromkeys(name for _, name in t.episode.events)),
        )
        for t in timelines
    ]


def _frame(moment: Moment, found: Described, pictures: Mapping, title: str = "") -> Frame:
    score = round(moment.score, 2) + 0.0  # -0 is 0
    caption = f"step {moment.step}, score {score:.2f}"
    picture = pictures.get((moment.episode, moment.step))
    observation = moment.episode.frames[moment.step]
    if picture is None:
        picture = to_picture(observation, found.channels)
    if picture is None:
        return Frame("", caption, title)
    return Frame(to_address(picture), caption, title)


def to_address(picture: np.ndarray) -> str:
    """A picture [H, W, 3] as a data: address; small ones with every pixel as a square."""
    image = Image.fromarray(np.asarray(picture, dtype=np.uint8))
    times = -(-SMALLEST // max(image.size))
    if times > 1:
        image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(written.getvalue()).decode()
