"""Success and failure memories: whole episodes of raw observations, first in, first out.

Episodes are immutable and shared by reference: an exemplar set of a frozen prototype costs a tuple
of references, not a copy of frames. Each frame's digest is kept with its episode, so that equal
frames are found without looking at pixels again and are encoded once per gradient step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rllib_conspec.episodes import Episode


@dataclass(frozen=True, eq=False)
class Exemplars:
    """The successes and failures that define one prototype."""

    successes: tuple[Episode, ...]
    failures: tuple[Episode, ...]


class EpisodeMemory:
    """A bounded memory of the newest episodes: first in, first out."""

    def __init__(self, capacity: int) -> None:
        self.seen = 0  # episodes ever offered
        self._capacity = capacity
        self._episodes: list[Episode] = []

    def __len__(self) -> int:
        return len(self._episodes)

    def __iter__(self):
        return iter(self._episodes)

    def offer(self, episodes: Iterable[Episode]) -> list[Episode]:
        """Take the episodes in; returns those that are not, or no longer, held."""
        episodes = list(episodes)
        self.seen += len(episodes)
        every = self._episodes + episodes
        self._episodes = every[-self._capacity :]
        return every[: -self._capacity]

    def extend(self, episodes: Iterable[Episode]) -> None:
        self.offer(episodes)

    def restore(self, episodes: Iterable[Episode], seen: int) -> None:
        """Hold exactly these, as after `seen` offers."""
        self._episodes, self.seen = list(episodes), seen


class Reservoir(EpisodeMemory):
    """A bounded uniform sample of all episodes ever offered (algorithm R)."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        super().__init__(capacity)
        self._rng = rng

    def offer(self, episodes: Iterable[Episode]) -> list[Episode]:
        left = []
        for episode in episodes:
            self.seen += 1
            if len(self._episodes) < self._capacity:
                self._episodes.append(episode)
                continue
            place = int(self._rng.integers(self.seen))
            if place < self._capacity:
                episode, self._episodes[place] = self._episodes[place], episode
            left.append(episode)
        return left


def draw(episodes: Sequence[Episode], count: int, rng: np.random.Generator) -> tuple[Episode, ...]:
    """`count` different episodes at random, in the order in which they are stored; all if fewer."""
    episodes = tuple(episodes)
    if count >= len(episodes):
        return episodes
    return tuple(episodes[i] for i in np.sort(rng.choice(len(episodes), count, replace=False)))


def pack(groups: Sequence[Sequence[Episode]]) -> dict[str, Any]:
    """Groups of episodes that may share members, as plain arrays with every episode stored once.

    Sharing survives `unpack`, so that a checkpoint is no larger than the memory it was taken from.
    """
    distinct = list({id(e): e for group in groups for e in group}.values())
    position = {id(e): i for i, e in enumerate(distinct)}
    return {
        "episodes": [{name: getattr(e, name) for name in _FIELDS} for e in distinct],
        "groups": [[position[id(e)] for e in group] for group in groups],
    }


_FIELDS = [f.name for f in fields(Episode) if f.name != "info"]


def unpack(packed: dict[str, Any]) -> list[tuple[Episode, ...]]:
    """The groups that `pack` was given, sharing restored."""
    distinct = [Episode(**values).kept() for values in packed["episodes"]]
    return [tuple(distinct[i] for i in group) for group in packed["groups"]]
