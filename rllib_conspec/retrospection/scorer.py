"""The rollout worker's side of ConSpec: intrinsic rewards from the learner's last snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from rllib_conspec.retrospection.memory import DistinctFrames, StoredEpisode
from rllib_conspec.retrospection.options import ConSpecOptions
from rllib_conspec.retrospection.prototypes import Prototypes
from rllib_conspec.retrospection.rewards import potential_reward, window_reward


@dataclass(frozen=True)
class Snapshot:
    """What a rollout worker needs to compute intrinsic rewards: only the prototypes that pay."""

    version: int  # iterations of the learner so far
    weights: dict[str, np.ndarray]  # empty when no prototype pays yet
    pays: np.ndarray  # bool [H]


class ConSpecScorer:
    """The worker's side: intrinsic rewards from the snapshot that was loaded last."""

    def __init__(self, options: ConSpecOptions, shape: Sequence[int], gamma: float) -> None:
        self.options = options
        self.gamma = gamma
        self.snapshot = Snapshot(0, {}, np.zeros(options.num_prototypes, dtype=bool))
        self._shape = tuple(shape)
        self._model: Prototypes | None = None

    @property
    def version(self) -> int:
        return self.snapshot.version

    def load(self, snapshot: Snapshot) -> None:
        paying = int(snapshot.pays.sum())
        if paying and (self._model is None or len(self._model.vectors) != paying):
            options = replace(self.options, num_prototypes=paying, recruit=False)
            self._model = Prototypes(options, self._shape).requires_grad_(False)
        if paying:
            # Arrays from the object store are read-only, which torch does not know: copy them.
            weights = {name: torch.from_numpy(np.array(w)) for name, w in snapshot.weights.items()}
            self._model.load_state_dict(weights)
        self.snapshot = snapshot

    def reward(self, episodes: Sequence[StoredEpisode]) -> list[np.ndarray]:
        """Intrinsic reward of every step: one float32 array [T] per episode."""
        if not episodes or not self.snapshot.pays.any():
            return [np.zeros(len(e), dtype=np.float32) for e in episodes]
        return [self._pay(s).astype(np.float32) for s in episode_scores(self._model, episodes)]

    def _pay(self, s: np.ndarray) -> np.ndarray:
        o = self.options
        scale = o.intrinsic_coeff * o.task_reward
        s = s.astype(np.float64)
        if o.intrinsic == "potential":
            return potential_reward(s, scale=scale, threshold=o.threshold, gamma=self.gamma)
        return window_reward(
            s,
            scale=scale,
            threshold=o.threshold,
            window=o.window,
            remove_repeats=o.remove_repeats,
            once=o.pay_once,
        )


def episode_scores(model: Prototypes, episodes: Sequence[StoredEpisode]) -> list[np.ndarray]:
    """Scores [H, T] of every episode, without a graph; equal frames are scored once."""
    distinct = DistinctFrames.of(episodes)
    device = model.vectors.device
    with torch.inference_mode():
        z = model.encode(torch.from_numpy(distinct.frames).to(device))
        s = model.scores(z, torch.arange(len(model.vectors), device=device)).cpu().numpy()
    return [s[:, distinct.index[id(e)]] for e in episodes]
