"""The policies: an encoder, a core (its memory, if any), and heads for actions and value.

`model_config`: `encoder` (auto, conv, impala, strided, mlp), `encoder_dim`, `core` (gru, rma, rims,
or the import path of another), `core_dim` (0: no memory), `core_options`, `max_seq_len` (by default
whole episodes). The paper's: keys conv 512 + gru 512; pixels impala 256 without memory; continuous
control mlp 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_conspec.environments import channels_of, is_unbounded
from rllib_conspec.networks.cores import build_core, core_class
from rllib_conspec.networks.cores.base import Core, Outputs
from rllib_conspec.networks.encoders import build_encoder, orthogonal
from rllib_conspec.networks.pieces import encode

# What `model_config` may hold, with defaults; the rest of RLlib's keys are set by the algorithm.
MODEL_CONFIG = {
    "encoder": "auto",
    "encoder_dim": 128,
    "core": "gru",
    "core_dim": 128,
    "core_options": {},
    "max_seq_len": None,
}
# How observations are read; set by the algorithm.
VIEW = ("observation_range", "channels", "normalize")
# Whether there is a second value; set by the algorithm where a reward model asks for one.
OWN_STREAM = "own_stream"
# In a state: the action before this step and what the environment paid for it, where the core reads
# them. In a batch: the same of every step, of which the next one's are made.
LAST, HAPPENED = "last", "happened"
OUTPUTS = "outputs"  # of the core, for losses
VALUES = "values"  # beside what a core gives, for reward models


class EpisodePolicy(TorchRLModule, ValueFunctionAPI):
    """Actions and values from observations [B, …] without memory or [B, T, …] with one."""

    @override(TorchRLModule)
    def setup(self) -> None:
        self.encoder, self.core = build_networks(
            self.observation_space, self.model_config, self.action_space
        )
        self.value = orthogonal(nn.Linear(self.core.dim, 1), gain=1.0)
        if self.model_config.get(OWN_STREAM):
            self.own_value = orthogonal(nn.Linear(self.core.dim, 1), gain=1.0)
        # A gain of 0.01 makes the first policy almost uniform.
        outputs = _action_outputs(self.action_space)
        self.actor = orthogonal(nn.Linear(self.core.dim, outputs), gain=0.01)

    @override(TorchRLModule)
    def is_stateful(self) -> bool:
        return bool(self.get_initial_state())

    @override(TorchRLModule)
    def get_initial_state(self) -> dict[str, Tensor]:
        state = self.core.initial_state()
        return state | {LAST: torch.zeros(last_width(self.action_space))} if self.reads else state

    @property
    def reads(self) -> bool:
        """Whether the core reads the last action and reward."""
        return self.core.reads_last

    def happened(self, actions: np.ndarray, rewards: np.ndarray) -> Tensor:
        """What the core reads of actions [B, …] and the environment's rewards [B] at the next step:
        [B, last_width].
        """
        actions, rewards = torch.from_numpy(actions), torch.from_numpy(rewards).float()
        if isinstance(self.action_space, spaces.Discrete):
            told = F.one_hot(actions.long(), int(self.action_space.n)).float()
        else:
            told = actions.float().flatten(1)
        return torch.cat([told, rewards.unsqueeze(1)], dim=1).to(self.actor.weight)

    @override(TorchRLModule)
    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, state, _ = self._features(batch)
        out = {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}
        if self.reads:
            state = state | {LAST: batch[Columns.STATE_IN][LAST]}  # for `TellLast` to replace
        return out | ({Columns.STATE_OUT: state} if state else {})

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features, _, outputs = self._features(batch)
        out = {Columns.ACTION_DIST_INPUTS: self.actor(features), Columns.EMBEDDINGS: features}
        return out | ({OUTPUTS: outputs} if outputs else {})

    @override(ValueFunctionAPI)
    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        """Values; without `embeddings` of a whole training batch, for advantages: no graph."""
        if embeddings is None:
            with torch.no_grad():
                return self.compute_values(batch, self._features(batch)[0])
        return self.value(embeddings).squeeze(-1)

    def own_values(self, embeddings: Tensor) -> Tensor:
        """Of what a reward model with a value stream of its own pays."""
        return self.own_value(embeddings).squeeze(-1)

    @torch.no_grad()
    def both_values(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Values of a whole training batch in both streams, for advantages: no graph."""
        features = self._features(batch)[0]
        return self.compute_values(batch, features), self.own_values(features)

    def act(
        self, observations: Tensor, state: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """One step of B episodes: [B, *shape], state → action inputs [B, A], next state, and what
        the core gives besides, each [B, …].

        Where the core reads what happened last, `LAST` of the next state is for the caller to set:
        only it knows what was done, and what for.
        """
        x = self.encoder(observations)
        if self.reads:
            x = torch.cat([x, state[LAST]], dim=-1)
        features, new, outputs = self.core.step(x, state)
        if self.core.gives:
            outputs = outputs | {VALUES: self.value(features).squeeze(-1)}
        return self.actor(features), new, outputs

    def _features(self, batch: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor], Outputs]:
        return features_of(self.encoder, self.core, batch)


def build_networks(
    space: spaces.Box, model_config: dict[str, Any], actions: spaces.Space | None = None
) -> tuple[nn.Module, Core]:
    """Encoder and core for observations of this space; without `actions` for those that do not
    read them.
    """
    config = MODEL_CONFIG | default_view(space) | model_config
    dim, view = config["encoder_dim"], {key: config[key] for key in VIEW}
    encoder = build_encoder(config["encoder"], space.shape, dim, **view)
    last = last_width(actions) if actions is not None else 0
    sizes = dim, config["core_dim"], config["core_options"], last
    return encoder, build_core(config["core"], *sizes)


def core_of(model_config: dict[str, Any] | None) -> type[Core]:
    """The class of the core that these networks have."""
    config = MODEL_CONFIG | (model_config or {})
    return core_class(config["core"], config["core_dim"])


def default_view(space: spaces.Box) -> dict[str, Any]:
    """How observations are read where nobody has looked at the environment."""
    return {
        "observation_range": 255.0 if space.dtype == "uint8" else 1.0,
        "channels": channels_of(space.shape),
        "normalize": is_unbounded(space),
    }


def features_of(
    encoder: nn.Module, core: Core, batch: dict[str, Any]
) -> tuple[Tensor, dict[str, Tensor], Outputs]:
    """Features, last state, and what the core gives losses: [B, …] without memory, [B, T, …] with
    one.
    """
    observations = batch[Columns.OBS]
    if not core.initial_state():
        return core(encode(encoder, observations), {})
    steps = observations.shape[:2]
    z = encode(encoder, observations.flatten(0, 1)).unflatten(0, steps)
    if core.reads_last:
        z = torch.cat([z, last_of(batch)], dim=-1)
    return core(z, batch[Columns.STATE_IN])


def last_of(batch: dict[str, Any]) -> Tensor:
    """What happened before every step of a batch: [B, T, last_width]."""
    first = batch[Columns.STATE_IN][LAST].unsqueeze(1)
    if batch[Columns.OBS].shape[1] == 1:  # a step of RLlib's own loop
        return first
    return torch.cat([first, batch[HAPPENED][:, :-1].to(first)], dim=1)


def last_width(actions: spaces.Space) -> int:
    """Numbers that an action and a reward are told by."""
    told = actions.n if isinstance(actions, spaces.Discrete) else np.prod(actions.shape)
    return int(told) + 1


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
