"""The rollout worker's side of ConSpec: intrinsic rewards from the learner's last snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.rewards import potential_reward, window_reward
from rllib_conspec.reward_models.distinct import DistinctFrames


@dataclass(frozen=True)
class Snapshot:
    """What a rollout worker needs to compute intrinsic rewards: only the prototypes that pay."""

    weights: dict[str, np.ndarray]  # empty when no prototype pays yet
    pays: np.ndarray  # bool [H]


class ConSpecScorer:
    """The worker's side: intrinsic rewards from the snapshot that was loaded last."""

    def __init__(
        self, options: ConSpecOptions, shape: Sequence[int], gamma: float, **view: Any
    ) -> None:
        self.options = options
        self.gamma = gamma
        self.snapshot = Snapshot({}, np.zeros(options.num_prototypes, dtype=bool))
        self._shape, self._view = tuple(shape), view
        self._model: Prototypes | None = None

    def load(self, snapshot: Snapshot) -> None:
        paying = int(snapshot.pays.sum())
        if paying and (self._model is None or len(self._model.vectors) != paying):
            options = replace(self.options, num_prototypes=paying, recruit_start=None)
            self._model = Prototypes(options, self._shape, **self._view).requires_grad_(False)
        if paying:
            # Arrays from the object store are read-only, which torch does not know: copy them.
            weights = {name: torch.from_numpy(np.array(w)) for name, w in snapshot.weights.items()}
            self._model.load_state_dict(weights)
        self.snapshot = snapshot

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """Intrinsic reward of every step: one float32 array [T] per episode."""
        if not episodes or not self.snapshot.pays.any():
            return [np.zeros(len(e), dtype=np.float32) for e in episodes]
        return [self._pay(s).astype(np.float32) for s in episode_scores(self._model, episodes)]

    def _pay(self, s: np.ndarray) -> np.ndarray:
        o = self.options
        s = s.astype(np.float64)
        if o.intrinsic == "potential":
            return potential_reward(
                s, scale=o.intrinsic_coeff, threshold=o.threshold, gamma=self.gamma
            )
        return window_reward(
            s,
            scale=o.intrinsic_coeff,
            threshold=o.threshold,
            window=o.window,
            remove_repeats=o.form != "paper",
            once=o.pay_once,
        )


def episode_scores(model: Prototypes, episodes: Sequence[Episode]) -> list[np.ndarray]:
    """Scores [H, T] of every episode, without a graph; equal frames are scored once."""
    distinct = DistinctFrames.of(episodes)
    device = model.vectors.device
    with torch.inference_mode():
        z = model.encode_all(distinct)
        s = model.scores(z, torch.arange(len(model.vectors), device=device)).cpu().numpy()
    return [s[:, distinct.index[id(e)]] for e in episodes]
