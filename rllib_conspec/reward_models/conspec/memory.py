"""The paper's memories: S and F, whole episodes of raw observations, first in, first out.

Episodes are immutable and shared by reference: an exemplar set of a frozen prototype costs a tuple
of references, not a copy of frames. They are packed, and unpacked where they are encoded: those of
32 Atari episodes would be 400 MB, for every frozen prototype that has its own. Each frame's digest
is kept with its episode, so that equal frames are found without looking at pixels again and are
encoded once per gradient step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.view import Contrast

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Exemplars:
    """The successes and failures that define one prototype."""

    successes: tuple[PackedEpisode, ...]
    failures: tuple[PackedEpisode, ...]


class EpisodeMemory:
    """A bounded memory of the newest episodes: first in, first out."""

    def __init__(self, capacity: int) -> None:
        self.seen = 0  # episodes ever offered
        self._capacity = capacity
        self._episodes: list[PackedEpisode] = []

    def __len__(self) -> int:
        return len(self._episodes)

    def __iter__(self):
        return iter(self._episodes)

    def extend(self, episodes: Iterable[PackedEpisode]) -> None:
        episodes = list(episodes)
        self.seen += len(episodes)
        self._episodes = (self._episodes + episodes)[-self._capacity :]

    def restore(self, episodes: Iterable[PackedEpisode], seen: int) -> None:
        """Hold exactly these, as after `seen` episodes."""
        self._episodes, self.seen = list(episodes), seen


class Newest:
    """S and F with the newest episodes; a frozen prototype keeps what they held."""

    def __init__(self, options: ConSpecOptions, rng: np.random.Generator) -> None:
        self._options, self._rng = options, rng
        self.successes = EpisodeMemory(options.memory_size)
        self.failures = EpisodeMemory(options.memory_size)
        self.exemplars: dict[int, Exemplars] = {}

    def add(self, won: Sequence[Episode], lost: Sequence[Episode]) -> None:
        self.successes.extend(e.packed() for e in won)
        self.failures.extend(e.packed() for e in lost)

    def start_from(self, successes: Sequence[PackedEpisode]) -> None:
        self.successes.extend(successes)

    @property
    def frozen(self) -> Iterable[int]:
        return self.exemplars.keys()

    @property
    def seen(self) -> tuple[int, int]:
        return self.successes.seen, self.failures.seen

    @property
    def count(self) -> tuple[int, int]:
        return len(self.successes), len(self.failures)

    @property
    def ready(self) -> bool:
        return len(self.successes) >= self._options.successes_needed and len(self.failures) > 0

    def draw(self, live: Sequence[int]) -> tuple[Contrast, list[Contrast]]:
        """What the live prototypes are to tell apart, and what each frozen one is."""
        return (
            Contrast(tuple(live), self._some(self.successes), self._some(self.failures)),
            [
                Contrast((i,), self._some(e.successes), self._some(e.failures))
                for i, e in self.exemplars.items()
            ],
        )

    def _some(self, episodes: Iterable[PackedEpisode]) -> tuple[PackedEpisode, ...]:
        return draw(tuple(episodes), self._options.memory_batch, self._rng)

    def freeze(self, i: int) -> None:
        """Prototypes that freeze at one time share their exemplars."""
        now = tuple(self.successes), tuple(self.failures)
        same = (e for e in self.exemplars.values() if (e.successes, e.failures) == now)
        self.exemplars[i] = next(same, None) or Exemplars(*now)

    def newest_successes(self) -> tuple[PackedEpisode, ...]:
        return tuple(self.successes)

    def examples(self, i: int | None) -> tuple[tuple[Episode, ...], ...]:
        """Prototype i's exemplars, or all that the memories hold."""
        own = self.exemplars.get(i, self)
        return tuple(tuple(e.unpacked() for e in kind) for kind in (own.successes, own.failures))

    def get_state(self) -> dict[str, Any]:
        groups = [tuple(self.successes), tuple(self.failures)]
        for e in self.exemplars.values():
            groups += [e.successes, e.failures]
        return {"episodes": pack(groups), "seen": self.seen, "frozen": list(self.exemplars)}

    def set_state(self, state: dict[str, Any]) -> None:
        groups = unpack(state["episodes"])
        for memory, held, seen in zip(
            (self.successes, self.failures), groups, state["seen"], strict=False
        ):
            memory.restore(held, seen)
        own = groups[2:]
        self.exemplars = {
            i: Exemplars(s, f) for i, s, f in zip(state["frozen"], own[::2], own[1::2], strict=True)
        }


def draw(episodes: Sequence[T], count: int, rng: np.random.Generator) -> tuple[T, ...]:
    """`count` different episodes at random, in the order in which they are stored; all if fewer."""
    episodes = tuple(episodes)
    if count >= len(episodes):
        return episodes
    return tuple(episodes[i] for i in np.sort(rng.choice(len(episodes), count, replace=False)))


def pack(groups: Sequence[Sequence[PackedEpisode]]) -> dict[str, Any]:
    """Groups of episodes that may share members, with every episode stored once.

    Sharing survives `unpack`, so that a checkpoint is no larger than the memory it was taken from.
    """
    distinct = list({id(e): e for group in groups for e in group}.values())
    position = {id(e): i for i, e in enumerate(distinct)}
    return {
        "episodes": distinct,
        "groups": [[position[id(e)] for e in group] for group in groups],
    }


def unpack(packed: dict[str, Any]) -> list[tuple[PackedEpisode, ...]]:
    """The groups that `pack` was given, sharing restored."""
    return [tuple(packed["episodes"][i] for i in group) for group in packed["groups"]]
