"""Equal frames are encoded once: the different ones of some episodes, and where each one stands.

Episodes may be packed. Nothing is unpacked to find equal frames, and an episode at a time to read
them, so that many long ones never lie in memory together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from rllib_conspec.episodes import Episode, PackedEpisode

AnyEpisode = Episode | PackedEpisode
MUCH = 4_000_000  # bytes of frames from which threads are worth starting


@dataclass(frozen=True)
class DistinctFrames:
    """The different frames of some episodes, and where each step's frame stands among them."""

    # Episodes and, of each, the steps [n] whose frames no episode before it has.
    sources: tuple[tuple[AnyEpisode, np.ndarray], ...]
    index: dict[int, np.ndarray]  # id(episode) → positions [T]

    @classmethod
    def of(cls, episodes: Iterable[AnyEpisode]) -> DistinctFrames:
        episodes = list({id(e): e for e in episodes}.values())
        bounds = np.cumsum([0, *(len(e) for e in episodes)])
        digests = np.concatenate([e.digests[1:] for e in episodes])
        _, first, place = np.unique(digests, return_index=True, return_inverse=True)
        # In order of appearance, so that each episode's share is one contiguous run.
        order = np.argsort(first)
        place = np.argsort(order)[place]
        first = first[order]
        cuts = np.searchsorted(first, bounds)
        sources = tuple(
            (e, first[cuts[i] : cuts[i + 1]] - bounds[i]) for i, e in enumerate(episodes)
        )
        index = {id(e): place[bounds[i] : bounds[i + 1]] for i, e in enumerate(episodes)}
        return cls(sources, index)

    def __len__(self) -> int:
        return sum(len(steps) for _, steps in self.sources)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one frame."""
        episode, _ = self.sources[0]
        return episode.shape

    @property
    def dtype(self) -> np.dtype:
        episode, _ = self.sources[0]
        return episode.dtype

    @cached_property
    def frames(self) -> np.ndarray:
        """All of them: [N, *shape]. Episodes are unpacked side by side where torch may use several
        cores and there is enough to do: neither unpacking nor copying holds Python's lock.
        """
        found = np.empty((len(self), *self.shape), self.dtype)
        ends = np.cumsum([len(steps) for _, steps in self.sources])

        def read(episode: AnyEpisode, steps: np.ndarray, end: int) -> None:
            if len(steps):
                # `clip` only because NumPy buffers what it may still refuse; no step is outside.
                place = found[end - len(steps) : end]
                np.take(episode.frames, steps, axis=0, out=place, mode="clip")

        work = [
            (episode, steps, end) for (episode, steps), end in zip(self.sources, ends, strict=True)
        ]
        threads = torch.get_num_threads() if found.nbytes >= MUCH else 1
        if threads == 1:
            for each in work:
                read(*each)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda each: read(*each), work))  # a list: errors are raised here
        return found

    def pieces(self, size: int) -> Iterator[np.ndarray]:
        """All of them in order, at most `size` at a time."""
        waiting: list[np.ndarray] = []
        room = size
        for episode, steps in self.sources:
            frames = episode.frames[steps]
            while len(frames):
                waiting.append(frames[:room])
                frames, room = frames[room:], room - len(waiting[-1])
                if room == 0:
                    yield _joined(waiting)
                    waiting, room = [], size
        if waiting:
            yield _joined(waiting)

    def take(self, positions: np.ndarray) -> np.ndarray:
        """The frames at these positions, which ascend: [n, *shape]."""
        begins = np.cumsum([0, *(len(steps) for _, steps in self.sources)])
        cuts = np.searchsorted(positions, begins)
        parts = [
            episode.frames[steps[positions[cuts[i] : cuts[i + 1]] - begins[i]]]
            for i, (episode, steps) in enumerate(self.sources)
            if cuts[i + 1] > cuts[i]
        ]
        return _joined(parts)

    def padded(self, episodes: Sequence[AnyEpisode]) -> tuple[np.ndarray, np.ndarray]:
        """Positions [K, T] of the episodes' frames (0 on padding) and mask [K, T] of real steps."""
        own = [self.index[id(e)] for e in episodes]
        lengths = np.array([len(positions) for positions in own])
        mask = np.arange(lengths.max()) < lengths[:, None]
        index = np.zeros(mask.shape, dtype=np.int64)
        index[mask] = np.concatenate(own)
        return index, mask


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
