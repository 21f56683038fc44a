"""What reward models with networks have in common: one module, one Adam, one generator.

A model says what its networks are (`build`) and learns in `update`. Here they are made when they
are first used, from the setting's seed and without touching torch's own generator, counted without
memory, and saved and restored exactly.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rllib_conspec.networks.devices import copied
from rllib_conspec.networks.optimizers import keeping_settings
from rllib_conspec.reward_models.base import RewardModel, Setting


class NetworkModel(RewardModel):
    """A reward model that learns by gradient steps. Its options have `lr`."""

    def __init__(self, options: Any, setting: Setting) -> None:
        super().__init__(options, setting)
        self._rng = np.random.default_rng(setting.seed)

    def build(self) -> nn.Module:
        """New networks. What does not learn has no gradient."""
        raise NotImplementedError

    def check(self) -> None:
        _ = self.num_parameters  # builds the networks, without memory

    @cached_property
    def num_parameters(self) -> int:
        with torch.device("meta"):
            networks = self.build()
        return sum(p.numel() for p in networks.parameters())

    @cached_property
    def networks(self) -> Any:
        # A generator of its own: when this is built must not change what is drawn later.
        seed = int(np.random.default_rng(self.setting.seed).integers(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.build().to(self.setting.device)

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        learning = [p for p in self.networks.parameters() if p.requires_grad]
        return torch.optim.Adam(learning, lr=self.options.lr)

    def step(self, loss: Tensor) -> float:
        """One gradient step; returns the loss."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """All of the networks, sharing nothing with them."""
        state = self.networks.state_dict()
        return {name: w.detach().cpu().numpy().copy() for name, w in state.items()}

    def load_weights(self, weights: Mapping[str, np.ndarray]) -> None:
        # Arrays from the object store are read-only, which torch does not know: copy them.
        self.networks.load_state_dict(
            {n: torch.from_numpy(np.array(w)) for n, w in weights.items()}
        )

    def get_state(self) -> dict[str, Any]:
        return {
            "networks": self.weights,
            "optimizer": copied(self.optimizer.state_dict()),
            "rng": copy.deepcopy(self._rng.bit_generator.state),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.load_weights(state["networks"])
        with keeping_settings([self.optimizer]):
            self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        self._rng.bit_generator.state = state["rng"]
