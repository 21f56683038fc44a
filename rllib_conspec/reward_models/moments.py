"""Moments of episodes that a model has something to say of: which to show first, what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.base import Moment

NEAR = 2  # steps between a moment and an event that it is said to have found


def different_first(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """The same moments in their order: each different frame once, then repeats."""
    seen: set[int] = set()
    different, repeated = [], []
    for moment in moments:
        digest = int(moment.episode.digests[moment.step + 1])  # of the frame that the step led to
        (repeated if digest in seen else different).append(moment)
        seen.add(digest)
    return (*different, *repeated)


def shares_near(episodes: Sequence[Episode], peaks: Sequence[Sequence[int]]) -> dict[str, float]:
    """Event → share of the episodes with it in which one of `peaks` lies within NEAR steps."""
    hits: dict[str, list[bool]] = {}
    for episode, steps in zip(episodes, peaks, strict=True):
        for t, name in episode.events:
            near = any(abs(int(step) - t) <= NEAR for step in steps)
            hits.setdefault(name, []).append(near)
    return {name: float(np.mean(near)) for name, near in sorted(hits.items())}


def likeliest(events: dict[str, float]) -> str:
    """The event found most often, if any is found in at least half of the episodes with it."""
    best = max(events, key=events.get, default="")
    return best if best and events[best] >= 0.5 else ""
