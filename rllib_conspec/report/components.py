"""Vectors have no picture: which of their components are unusual at the moments shown, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.reward_models.base import Moment

UNUSUAL = 1.0  # standard deviations from the mean over all steps of the same episodes
SAID = 3  # components named in words


@dataclass(frozen=True)
class Component:
    """One number of a vector observation."""

    index: int
    deviation: float  # of its mean at the moments, in standard deviations over all steps
    value: float  # mean at the moments
    usual: float  # mean over all steps


def components(moments: Sequence[Moment]) -> list[Component]:
    """All components of the vectors observed, the most unusual first. Constant ones are never
    unusual.
    """
    at = np.stack([m.episode.frames[m.step] for m in moments]).astype(np.float64)  # [K, D]
    every = np.concatenate([e.frames for e in {id(m.episode): m.episode for m in moments}.values()])
    usual, spread = every.mean(axis=0, dtype=np.float64), every.std(axis=0, dtype=np.float64)
    value = at.mean(axis=0)
    deviation = np.divide(value - usual, spread, out=np.zeros_like(value), where=spread > 1e-9)
    return [
        Component(int(i), float(deviation[i]), float(value[i]), float(usual[i]))
        for i in np.argsort(-np.abs(deviation), kind="stable")
    ]


def name_of(index: int, names: Sequence[str]) -> str:
    return names[index] if index < len(names) else f"component {index}"


def in_words(moments: Sequence[Moment], names: Sequence[str] = ()) -> str:
    """`switch 1 is 1 (on average 0.03), …`; empty where nothing is unusual."""
    unusual = [c for c in components(moments) if abs(c.deviation) >= UNUSUAL][:SAID]
    return ", ".join(
        f"{name_of(c.index, names)} is {_number(c.value)} (on average {_number(c.usual)})"
        for c in unusual
    )


def _number(value: float) -> str:
    return f"{round(value, 6) + 0.0:.3g}"  # rounding errors are 0, and -0 is 0
