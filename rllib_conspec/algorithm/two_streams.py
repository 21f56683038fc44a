"""Advantages of a policy that is paid in two streams: the environment's, and one of its own value.

A reward model may ask for a stream of its own (`RewardModel.own_stream`), as random network
distillation does: a second value, with a gamma of its own, of what that model pays. It is not ended
by episodes: what is new after the next reset counts, too. So the episodes of a batch are one
stream, each followed by the next, and the last by one that begins as they do on average:

    A = A_environment + A_own      then brought to mean 0 and deviation 1, as RLlib does
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.annotations import override
from ray.rllib.utils.postprocessing.value_predictions import compute_value_targets
from ray.rllib.utils.postprocessing.zero_padding import (
    split_and_zero_pad_n_episodes,
    unpad_data_if_necessary,
)
from torch import Tensor

from rllib_conspec.algorithm.paying import OWN_REWARDS

OWN_TARGETS = "own_value_targets"


class TwoStreams(ConnectorV2):
    """In place of RLlib's GAE; the column of own rewards comes with the episodes."""

    def __init__(self, *, gamma: float, own_gamma: float, lambda_: float) -> None:
        super().__init__()
        self.gamma, self.own_gamma, self.lambda_ = gamma, own_gamma, lambda_

    @override(ConnectorV2)
    def __call__(self, *, rl_module: Any, batch: Any, episodes: Any, **kwargs: Any) -> Any:
        policy, own = rl_module[DEFAULT_MODULE_ID].unwrapped(), batch[DEFAULT_MODULE_ID]
        lengths = [len(e) for e in episodes]  # with the step that RLlib added

        def flat(values: Any) -> np.ndarray:
            array = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
            return np.asarray(unpad_data_if_necessary(lengths, array))

        value, second = (flat(v) for v in policy.both_values(own))
        targets = compute_value_targets(
            values=value,
            rewards=flat(own[Columns.REWARDS]),
            terminateds=flat(own[Columns.TERMINATEDS]),
            truncateds=flat(own[Columns.TRUNCATEDS]),
            gamma=self.gamma,
            lambda_=self.lambda_,
        )
        real = np.ones(len(value), dtype=bool)
        real[np.cumsum(lengths) - 1] = False
        starts = np.cumsum([0, *(n - 1 for n in lengths[:-1])])
        advantage = np.zeros(len(value))
        advantage[real] = endless_advantages(
            second[real],
            flat(own[OWN_REWARDS])[real],
            after=second[real][starts].mean(),
            gamma=self.own_gamma,
            lambda_=self.lambda_,
        )
        both = targets - value + advantage
        found = {
            Postprocessing.ADVANTAGES: (both - both.mean()) / max(1e-4, both.std()),
            Postprocessing.VALUE_TARGETS: targets,
            OWN_TARGETS: second + advantage,
        }
        device = policy.actor.weight.device
        for name, values in found.items():
            values = values.astype(np.float32)
            if policy.is_stateful():
                longest = policy.model_config["max_seq_len"]
                rows = split_and_zero_pad_n_episodes(
                    values, episode_lens=lengths, max_seq_len=longest
                )
                values = np.stack(rows)
            own[name] = torch.from_numpy(values).to(device)
        return batch


def endless_advantages(
    values: np.ndarray, rewards: np.ndarray, *, after: float, gamma: float, lambda_: float
) -> np.ndarray:
    """GAE [N] of steps that follow each other without an end; `after` is the value after them."""
    change = rewards + gamma * np.append(values[1:], after) - values
    advantages, last = np.zeros(len(values)), 0.0
    for t in range(len(values) - 1, -1, -1):
        last = change[t] + gamma * lambda_ * last
        advantages[t] = last
    return advantages
