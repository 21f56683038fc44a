"""The policies: an encoder, a core (its memory, if any), and heads for actions and value.

`model_config`: `encoder` (auto, conv, impala, strided, mlp), `encoder_dim`, `core` (gru, or the
import path of another), `core_dim` (0: no memory), `max_seq_len` (by default whole episodes). The
paper's: keys conv 512 + gru 512; pixels impala 256 without memory; continuous control mlp 64.
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

from rllib_conspec.environments import channels_of, is_unbounded
from rllib_conspec.networks.cores import build_core
from rllib_conspec.networks.cores.base import Core
from rllib_conspec.networks.encoders import build_encoder, orthogonal
from rllib_conspec.networks.pieces import encode

# What `model_config` may hold, with defaults; the rest of RLlib's keys are set by the algorithm.
MODEL_CONFIG = {
    "encoder": "auto",
    "encoder_dim": 128,
    "core": "gru",
    "core_dim": 128,
    "max_seq_len": None,
}
# How observations are read; set by the algorithm.
VIEW = ("observation_range", "channels", "normalize")


class EpisodePolicy(TorchRLModule, ValueFunctionAPI):
    """Actions and values from observations [B, …] without memory or [B, T, …] with one."""

    @override(TorchRLModule)
    def setup(self) -> None:
        self.encoder, self.core = build_networks(self.observation_space, self.model_config)
        self.value = orthogonal(nn.Linear(self.core.dim, 1), gain=1.0)
        # A gain of 0.01 makes the first policy almost uniform.
        outputs = _action_outputs(self.action_space)
        self.actor = orthogonal(nn.Linear(self.core.dim, outputs), gain=0.01)

    @override(TorchRLModule)
    def is_stateful(self) -> bool:
        return bool(self.get_initial_state())

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        return self.core.initial_state()

    @override(TorchRLModule)
    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, state = self._features(batch)
        out = {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}
        return out | ({Columns.STATE_OUT: state} if state else {})

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, _ = self._features(batch)
        return {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}

    @override(ValueFunctionAPI)
    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        """Values; without `embeddings` of a whole training batch, for advantages: no graph."""
        if embeddings is None:
            with torch.no_grad():
                return self.compute_values(batch, self._features(batch)[0])
        return self.value(embeddings).squeeze(-1)

    def act(
        self, observations: Tensor, state: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """One step of B episodes: [B, *shape], state → action inputs [B, A], next state, and what
        the core gives besides, each [B, …].
        """
        features, state, outputs = self.core.step(self.encoder(observations), state)
        return self.actor(features), state, outputs

    def _features(self, batch: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        return features_of(self.encoder, self.core, batch)


def build_networks(space: spaces.Box, model_config: dict[str, Any]) -> tuple[nn.Module, Core]:
    """Encoder and core for observations of this space."""
    config = MODEL_CONFIG | default_view(space) | model_config
    dim, view = config["encoder_dim"], {key: config[key] for key in VIEW}
    encoder = build_encoder(config["encoder"], space.shape, dim, **view)
    return encoder, build_core(config["core"], dim, config["core_dim"])


def default_view(space: spaces.Box) -> dict[str, Any]:
    """How observations are read where nobody has looked at the environment."""
    return {
        "observation_range": 255.0 if space.dtype == "uint8" else 1.0,
        "channels": channels_of(space.shape),
        "normalize": is_unbounded(space),
    }


def features_of(
    encoder: nn.Module, core: Core, batch: dict[str, Any]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Features and last state: [B, …] without memory, [B, T, …] with one."""
    observations = batch[Columns.OBS]
    if not core.initial_state():
        return core(encode(encoder, observations), {})
    steps = observations.shape[:2]
    z = encode(encoder, observations.flatten(0, 1)).unflatten(0, steps)
    return core(z, batch[Columns.STATE_IN])


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
