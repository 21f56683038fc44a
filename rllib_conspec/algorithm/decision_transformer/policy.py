"""The policy: it reads the episode that goes on, and the return that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.annotations import override
from torch import Tensor

from rllib_conspec.algorithm.decision_transformer.windows import (
    ACTIONS,
    LENGTH,
    RETURNS,
    STEPS,
    window,
)
from rllib_conspec.algorithm.policy import build_networks
from rllib_conspec.networks.decision_transformer import DecisionTransformer


class ContextPolicy(TorchRLModule):
    """Windows [B, K, …] → logits: [B, K, A] to learn from, [B, A] of the last real step to act."""

    @override(TorchRLModule)
    def setup(self) -> None:
        config = self.model_config
        encoder, _ = build_networks(self.observation_space, config | {"core_dim": 0})
        self.transformer = DecisionTransformer(
            encoder,
            int(self.action_space.n),
            width=config["encoder_dim"],
            **{name: config[name] for name in ("longest", "blocks", "heads", "dropout")},
        )
        self.scale = float(config["scale"])

    @override(TorchRLModule)
    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        self.transformer.train()
        return {Columns.ACTION_DIST_INPUTS: self._logits(batch)}

    @override(TorchRLModule)
    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        self.transformer.eval()
        with torch.no_grad():
            logits = self._logits(batch)
        rows = torch.arange(len(logits), device=logits.device)
        return {Columns.ACTION_DIST_INPUTS: logits[rows, batch[LENGTH] - 1]}

    def _logits(self, batch: dict[str, Any]) -> Tensor:
        returns = batch[RETURNS] * (1 / self.scale)  # about 0..1 where recordings are
        return self.transformer(returns, batch[Columns.OBS], batch[ACTIONS], batch[STEPS])


class Context(ConnectorV2):
    """Gives the policy the last steps of every episode: the episode itself is its memory."""

    def __init__(
        self, *spaces: Any, context: int, target: float, lessens: bool, **kwargs: Any
    ) -> None:
        """`target` is asked for; what was paid is taken off it where it `lessens`."""
        super().__init__(*spaces, **kwargs)
        self._context, self._target, self._lessens = context, target, lessens

    @override(ConnectorV2)
    def __call__(self, *, rl_module, batch, episodes, **kwargs: Any) -> Any:
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            for name, value in self._window(episode).items():
                self.add_batch_item(batch, name, value, episode)
        return batch

    def _window(self, episode: Any) -> dict[str, Any]:
        done = len(episode)
        length = min(self._context, done + 1)
        begin = done + 1 - length
        paid = np.zeros(done + 1)
        if self._lessens:
            paid[1:] = np.cumsum(episode.get_rewards())
        return window(
            self._context,
            np.stack(episode.get_observations(slice(-length, None))),
            np.asarray(episode.get_actions(), np.int64)[begin:],
            self._target - paid[begin:],
            begin,
        )
