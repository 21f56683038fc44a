"""Success and failure memories: whole episodes of raw observations, first in, first out.

Episodes are immutable and shared by reference: an exemplar set of a frozen prototype costs a tuple
of references, not a copy of frames. Each frame's digest is kept with its episode, so that equal
frames are found without looking at pixels again and are encoded once per gradient step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class StoredEpisode:
    """One finished episode: the observations that its T steps led to."""

    frames: np.ndarray  # [T, *shape], as the environment gave them
    digests: np.ndarray  # uint64 [T]; equal frames have equal digests
    success: bool
    # (step, name) of what the environment marked as worth finding. Never learned from: it lets a
    # report say which of these steps a prototype found.
    events: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(
        cls, frames: np.ndarray, success: bool, events: Iterable[tuple[int, str]] = ()
    ) -> StoredEpisode:
        frames = np.array(frames, order="C")
        digests = np.array([_digest(frame) for frame in frames], dtype=np.uint64)
        frames.flags.writeable = digests.flags.writeable = False
        return cls(frames, digests, bool(success), tuple((int(t), str(e)) for t, e in events))

    def judged(self, success: bool) -> StoredEpisode:
        """The same frames with this verdict."""
        return replace(self, success=bool(success))

    def copied(self) -> StoredEpisode:
        """The same with frames in memory of its own, not in a store that others may free."""
        frames = self.frames.copy()
        frames.flags.writeable = False
        return replace(self, frames=frames, digests=self.digests.copy())

    def __len__(self) -> int:
        return len(self.frames)


def _digest(frame: np.ndarray) -> int:
    # 64 bits: among the 100 000 frames of full memories, a collision has a chance of 3e-10.
    return int.from_bytes(hashlib.blake2b(frame.data, digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class Exemplars:
    """The successes and failures that define one prototype."""

    successes: tuple[StoredEpisode, ...]
    failures: tuple[StoredEpisode, ...]


class EpisodeMemory:
    """A bounded memory of the newest episodes: first in, first out."""

    def __init__(self, capacity: int) -> None:
        self.seen = 0  # episodes ever offered
        self._capacity = capacity
        self._episodes: list[StoredEpisode] = []

    def __len__(self) -> int:
        return len(self._episodes)

    def __iter__(self):
        return iter(self._episodes)

    def offer(self, episodes: Iterable[StoredEpisode]) -> list[StoredEpisode]:
        """Take the episodes in; returns those that are not, or no longer, held."""
        episodes = list(episodes)
        self.seen += len(episodes)
        every = self._episodes + episodes
        self._episodes = every[-self._capacity :]
        return every[: -self._capacity]

    def extend(self, episodes: Iterable[StoredEpisode]) -> None:
        self.offer(episodes)

    def restore(self, episodes: Iterable[StoredEpisode], seen: int) -> None:
        """Hold exactly these, as after `seen` offers."""
        self._episodes, self.seen = list(episodes), seen


class Reservoir(EpisodeMemory):
    """A bounded uniform sample of all episodes ever offered (algorithm R)."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        super().__init__(capacity)
        self._rng = rng

    def offer(self, episodes: Iterable[StoredEpisode]) -> list[StoredEpisode]:
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


def draw(
    episodes: Sequence[StoredEpisode], count: int, rng: np.random.Generator
) -> tuple[StoredEpisode, ...]:
    """`count` different episodes at random, in the order in which they are stored; all if fewer."""
    episodes = tuple(episodes)
    if count >= len(episodes):
        return episodes
    return tuple(episodes[i] for i in np.sort(rng.choice(len(episodes), count, replace=False)))


def pack(groups: Sequence[Sequence[StoredEpisode]]) -> dict[str, Any]:
    """Groups of episodes that may share members, as plain arrays with every episode stored once.

    Sharing survives `unpack`, so that a checkpoint is no larger than the memory it was taken from.
    """
    distinct = list({id(e): e for group in groups for e in group}.values())
    position = {id(e): i for i, e in enumerate(distinct)}
    return {
        "frames": [e.frames for e in distinct],
        "success": [e.success for e in distinct],
        "events": [e.events for e in distinct],
        "groups": [[position[id(e)] for e in group] for group in groups],
    }


def unpack(packed: dict[str, Any]) -> list[tuple[StoredEpisode, ...]]:
    """The groups that `pack` was given, sharing restored."""
    distinct = [
        StoredEpisode.of(np.array(frames), success, events)
        for frames, success, events in zip(
            packed["frames"], packed["success"], packed["events"], strict=True
        )
    ]
    return [tuple(distinct[i] for i in group) for group in packed["groups"]]


@dataclass(frozen=True)
class DistinctFrames:
    """The different frames of some episodes, and where each step's frame stands among them."""

    frames: np.ndarray  # [N, *shape]
    index: dict[int, np.ndarray]  # id(episode) → positions [T]

    @classmethod
    def of(cls, episodes: Iterable[StoredEpisode]) -> DistinctFrames:
        episodes = list({id(e): e for e in episodes}.values())
        bounds = np.cumsum([0, *(len(e) for e in episodes)])
        digests = np.concatenate([e.digests for e in episodes])
        _, first, place = np.unique(digests, return_index=True, return_inverse=True)
        # In order of appearance, so that each episode's share is one contiguous run.
        order = np.argsort(first)
        place = np.argsort(order)[place]
        first = first[order]
        cuts = np.searchsorted(first, bounds)
        frames = np.concatenate(
            [e.frames[first[cuts[i] : cuts[i + 1]] - bounds[i]] for i, e in enumerate(episodes)]
        )
        index = {id(e): place[bounds[i] : bounds[i + 1]] for i, e in enumerate(episodes)}
        return cls(frames, index)

    def padded(self, episodes: Sequence[StoredEpisode]) -> tuple[np.ndarray, np.ndarray]:
        """Positions [K, T] of the episodes' frames (0 on padding) and mask [K, T] of real steps."""
        longest = max(len(e) for e in episodes)
        index = np.zeros((len(episodes), longest), dtype=np.int64)
        mask = np.zeros((len(episodes), longest), dtype=bool)
        for k, episode in enumerate(episodes):
            index[k, : len(episode)] = self.index[id(episode)]
            mask[k, : len(episode)] = True
        return index, mask
