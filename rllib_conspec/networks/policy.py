"""The policies: an encoder, an optional GRU, and heads for actions and value, as one RLModule.

`model_config`: `encoder` (conv, impala, strided, mlp), `encoder_dim`, `gru_dim` (0: no memory).
The paper's: keys conv 512 + GRU 512; pixels impala 256; continuous control mlp 64.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor, nn

from rllib_conspec.networks.encoders import build_encoder, orthogonal
from rllib_conspec.networks.gru import GRU

# What `model_config` may hold, with defaults; the rest of RLlib's keys are set by the algorithm.
MODEL_CONFIG = {"encoder": "conv", "encoder_dim": 512, "gru_dim": 512}


class EpisodePolicy(TorchRLModule, ValueFunctionAPI):
    """Actions and values from observations [B, …] without memory or [B, T, …] with a GRU."""

    @override(TorchRLModule)
    def setup(self) -> None:
        config = MODEL_CONFIG | self.model_config
        dim, self.gru_dim = config["encoder_dim"], config["gru_dim"]
        self.encoder = build_encoder(config["encoder"], self.observation_space.shape, dim)
        self.gru = GRU(dim, self.gru_dim) if self.gru_dim else None
        features = self.gru_dim or dim
        self.value = orthogonal(nn.Linear(features, 1), gain=1.0)
        # A gain of 0.01 makes the first policy almost uniform.
        self.actor = orthogonal(nn.Linear(features, _action_outputs(self.action_space)), gain=0.01)

    @override(TorchRLModule)
    def is_stateful(self) -> bool:
        return self.gru is not None

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        return {"h": torch.zeros(self.gru_dim)} if self.gru else {}

    @override(TorchRLModule)
    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, state = self._features(batch)
        out = {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}
        return out | ({Columns.STATE_OUT: {"h": state}} if self.gru else {})

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, _ = self._features(batch)
        return {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}

    @override(ValueFunctionAPI)
    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        if embeddings is None:
            embeddings, _ = self._features(batch)
        return self.value(embeddings).squeeze(-1)

    def act(self, observations: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """One step of many episodes: [B, *shape], [B, gru_dim] → action inputs, next state."""
        z = self.encoder(observations)
        if self.gru is None:
            return self.actor(z), None
        state = self.gru.step(z, state)
        return self.actor(state), state

    def _features(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        observations = batch[Columns.OBS]
        if self.gru is None:
            return self.encoder(observations), None
        steps = observations.shape[:2]
        z = self.encoder(observations.flatten(0, 1)).unflatten(0, steps)
        return self.gru(z, batch[Columns.STATE_IN]["h"])


def _action_outputs(space: spaces.Space) -> int:
    """Inputs that the action distribution takes: logits, or means and log deviations."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return 2 * int(space.shape[0])
    if isinstance(space, spaces.Box):
        raise ValueError(f"actions of shape {space.shape} are not supported; use a flat Box.")
    raise ValueError(
        f"actions of type {type(space).__name__} are not supported; use Discrete or Box."
    )
