"""Equal frames are encoded once: the different ones of some episodes, and where each one stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.episodes import Episode


@dataclass(frozen=True)
class DistinctFrames:
    """The different frames of some episodes, and where each step's frame stands among them."""

    frames: np.ndarray  # [N, *shape]
    index: dict[int, np.ndarray]  # id(episode) → positions [T]

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> DistinctFrames:
        episodes = list({id(e): e for e in episodes}.values())
        bounds = np.cumsum([0, *(len(e) for e in episodes)])
        digests = np.concatenate([e.digests[1:] for e in episodes])
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

    def padded(self, episodes: Sequence[Episode]) -> tuple[np.ndarray, np.ndarray]:
        """Positions [K, T] of the episodes' frames (0 on padding) and mask [K, T] of real steps."""
        longest = max(len(e) for e in episodes)
        index = np.zeros((len(episodes), longest), dtype=np.int64)
        mask = np.zeros((len(episodes), longest), dtype=bool)
        for k, episode in enumerate(episodes):
            index[k, : len(episode)] = self.index[id(episode)]
            mask[k, : len(episode)] = True
        return index, mask
