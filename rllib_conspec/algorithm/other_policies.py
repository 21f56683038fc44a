"""Our networks as other algorithms of RLlib want them: APPO's has a second policy, DQN's is a Q.

They stand in for RLlib's own where `model_config` has keys of ours (`encoder`, `core_dim`, …):
small pictures and bytes are then read as on PPO, and policies may have a memory.
"""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import DefaultDQNTorchRLModule
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.apis import (
    TARGET_NETWORK_ACTION_DIST_INPUTS,
    InferenceOnlyAPI,
    TargetNetworkAPI,
)
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor, nn

from rllib_conspec.algorithm.policy import EpisodePolicy, build_networks, features_of
from rllib_conspec.networks.encoders import orthogonal


class TargetPolicy(EpisodePolicy, InferenceOnlyAPI, TargetNetworkAPI):
    """For APPO: the policy, and an older one that it must not leave too far behind."""

    @override(TargetNetworkAPI)
    def make_target_networks(self) -> None:
        self.old_encoder = make_target_network(self.encoder)
        self.old_core = make_target_network(self.core)
        self.old_actor = make_target_network(self.actor)

    @override(TargetNetworkAPI)
    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        return [
            (self.encoder, self.old_encoder),
            (self.core, self.old_core),
            (self.actor, self.old_actor),
        ]

    @override(TargetNetworkAPI)
    def forward_target(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        features, _, _ = features_of(self.old_encoder, self.old_core, batch)
        return {TARGET_NETWORK_ACTION_DIST_INPUTS: self.old_actor(features)}

    @override(InferenceOnlyAPI)
    def get_non_inference_attributes(self) -> list[str]:
        return ["old_encoder", "old_core", "old_actor"]


class QPolicy(DefaultDQNTorchRLModule):
    """RLlib's module for DQN and all its variants, on our encoders and cores."""

    def __init__(self, *args: Any, catalog_class: type | None = None, **kwargs: Any) -> None:
        # RLlib's catalog of networks is left out: it refuses pictures that it does not know.
        super(DefaultDQNTorchRLModule, self).__init__(*args, **kwargs)

    @override(RLModule)
    def setup(self) -> None:
        self.catalog = _Parts(self)
        super().setup()

    @override(TorchRLModule)
    def is_stateful(self) -> bool:
        return bool(self.get_initial_state())


class _Parts:
    """What RLlib's module for DQN is built of, under the names that it asks for."""

    def __init__(self, module: QPolicy) -> None:
        self._module = module

    def build_encoder(self, framework: str) -> nn.Module:
        return _Features(*build_networks(self._module.observation_space, self._module.model_config))

    def build_af_head(self, framework: str) -> nn.Module:
        return self._head(int(self._module.action_space.n) * self._module.num_atoms)

    def build_vf_head(self, framework: str) -> nn.Module:
        return self._head(1)

    def _head(self, outputs: int) -> nn.Module:
        # Small first values: a policy that has seen nothing prefers nothing.
        return orthogonal(nn.Linear(self._module.encoder.core.dim, outputs), gain=0.01)


class _Features(nn.Module):
    """Encoder and core with an encoder's interface of RLlib's."""

    def __init__(self, encoder: nn.Module, core: nn.Module) -> None:
        super().__init__()
        self.encoder, self.core = encoder, core

    def get_initial_state(self) -> dict[str, Tensor]:
        return self.core.initial_state()

    def forward(self, batch: dict[str, Any]) -> dict[str, Any]:
        features, state, _ = features_of(self.encoder, self.core, batch)
        return {ENCODER_OUT: features} | ({Columns.STATE_OUT: state} if state else {})


OURS = {
    PPOConfig: EpisodePolicy,
    IMPALAConfig: EpisodePolicy,
    APPOConfig: TargetPolicy,
    DQNConfig: QPolicy,
}


def our_policy(config_class: type) -> type[RLModule] | None:
    """The policy of ours that an algorithm with such a configuration can train, if there is one."""
    return next((OURS[kind] for kind in config_class.__mro__ if kind in OURS), None)
