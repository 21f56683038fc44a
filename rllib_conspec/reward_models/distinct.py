"""Equal frames are encoded once: the different ones of some episodes, and where each one stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.episodes import Episode, PackedEpisode


@dataclass(frozen=True)
class DistinctFrames:
    """The different frames of some episodes, and where each step's frame stands among them."""

    frames: np.ndarray  # [N, *shape]
    index: dict[int, np.ndarray]  # id(episode) → positions [T]

    @classmethod
    def of(cls, episodes: Iterable[Episode | PackedEpisode]) -> DistinctFrames:
        episodes = list({id(e): e for e in episodes}.values())
        bounds = np.cumsum([0, *(len(e) for e in episodes)])
        digests = np.concatenate([e.digests[1:] for e in episodes])
        _, first, place = np.unique(digests, return_index=True, return_inverse=True)
        # In order of appearance, so that each episode's share is one contiguous run.
        order = np.argsort(first)
        place = np.argsort(order)[place]
        first = first[order]
        cuts = np.searchsorted(first, bounds)
        index = {id(e): place[bounds[i] : bounds[i + 1]] for i, e in enumerate(episodes)}
        return cls(_gathered(episodes, np.split(first, cuts[1:-1]), bounds), index)

    def padded(self, episodes: Sequence[Episode | PackedEpisode]) -> tuple[np.ndarray, np.ndarray]:
        """Positions [K, T] of the episodes' frames (0 on padding) and mask [K, T] of real steps."""
        lengths = np.array([len(e) for e in episodes])
        mask = np.arange(lengths.max()) < lengths[:, None]
        index = np.zeros(mask.shape, dtype=np.int64)
        index[mask] = np.concatenate([self.index[id(e)] for e in episodes])
        return index, mask


def _gathered(
    episodes: Sequence[Episode | PackedEpisode], steps: Sequence[np.ndarray], begins: np.ndarray
) -> np.ndarray:
    """Frames of these steps of every episode, one after the other; steps of an episode count from
    where it begins. Each frame is copied once, and one packed episode at a time is unpacked.
    """
    gathered, end = None, 0
    for episode, own, begin in zip(episodes, steps, begins, strict=False):
        frames = episode.frames
        if gathered is None:
            gathered = np.empty((sum(map(len, steps)), *frames.shape[1:]), dtype=frames.dtype)
        start, end = end, end + len(own)
        np.take(frames, own - begin, axis=0, out=gathered[start:end], mode="clip")
    return gathered
