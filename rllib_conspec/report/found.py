"""What the reward models of a checkpoint found, in words and pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_conspec.errors import UserError
from rllib_conspec.report.checkpoint import read_config, read_models
from rllib_conspec.report.components import in_words
from rllib_conspec.reward_models.base import Description, RewardModel, Row


@dataclass(frozen=True)
class Described:
    """What the models of a checkpoint say of themselves, and what is needed to draw it."""

    models: list[tuple[type[RewardModel], Description]]
    config: Any  # AlgorithmConfig, or None where it cannot be read
    names: Sequence[str]  # of the components of observations that are vectors
    channels: str | None  # of observations that are pictures: first or last


def described(checkpoint: str | Path) -> Described:
    """Ask the reward models of a checkpoint what they found. A UserError says why one cannot."""
    models = [
        (model, _describe(model, state, checkpoint)) for model, state in read_models(checkpoint)
    ]
    config = read_config(checkpoint)
    facts = getattr(config, "facts", None)
    names, channels = (facts.observation_names, facts.channels) if facts else ((), None)
    return Described(models, config, names, channels)


def describe_checkpoint(
    checkpoint: str | Path, directory: str | Path
) -> tuple[list[str], list[Path]]:
    """Lines that say what the models found, and their galleries, drawn into `directory`."""
    d = described(checkpoint)
    lines, pictures = [], []
    for model, description in d.models:
        own = list(description.lines)
        for gallery, rows in description.galleries.items():
            own = with_components(own, rows, d.names)
            path = Path(directory) / f"{gallery}.png"
            if path in pictures:  # two models that name theirs alike
                path = path.with_stem(f"{model.name}_{gallery}")
            trouble = _draw(rows, path, f"{model.name}: {gallery}", d)
            if trouble:
                own.append(f"{path.name} shows observations: {trouble}")
            pictures.append(path)
        lines += own
    return lines, pictures


def _describe(model: type[RewardModel], state: dict[str, Any], where: Any) -> Description:
    try:
        return model.describe(state)
    except Exception as error:  # whatever somebody's model raises
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"{where}: {model.name} cannot be described: {what}") from error


def with_components(lines: list[str], rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The same lines; where observations are vectors, also what is unusual at each row's moments:
    in the line that begins with the row's title, or in one of its own.
    """
    lines = list(lines)
    for row in rows:
        if not row.moments or row.moments[0].episode.observations.ndim != 2:
            continue
        words = in_words(row.moments, names)
        begins = re.compile(re.escape(row.title) + r"\b")
        own = next((i for i, line in enumerate(lines) if begins.match(line)), None)
        if words and own is None:
            lines.append(f"{row.title}: {words}")
        elif words:
            lines[own] += f"; {words}"
    return lines


def _draw(rows: Sequence[Row], path: Path, title: str, d: Described) -> str:
    """Draw one gallery; returns why it lacks the environment's own pictures, if it should not."""
    # Drawing takes a second to import, and not every model draws.
    from rllib_conspec.report.gallery import SHOWN, draw_gallery
    from rllib_conspec.report.replay import renders

    found, trouble = renders(d.config, [m for row in rows for m in row.moments[:SHOWN]])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_gallery(rows, path, title, renders=found, channels=d.channels, names=d.names)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}.") from error
    return trouble
