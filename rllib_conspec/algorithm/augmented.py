"""PPO on other observations than those that were played on.

PPO's ratio is that of two policies at one observation. Workers know the probabilities at what they
saw; the learner changes it, or they were shown something else than what episodes keep. Were the two
mixed, the ratio would begin away from 1, by as much as the change alone moves the policy, and the
clip would cut off what has nothing to do with learning. So what the policy that played would have
said to what is learned from is computed here, once for every minibatch. Advantages and targets of
the value stay those of what was played.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss


class Augmented:
    """Minibatches as the policy is to see them."""

    def __init__(self, parts: Sequence[AuxiliaryLoss], epsilon: float) -> None:
        self._parts = [part for part in parts if part.augments or part.shows()]
        self._epsilon = epsilon  # share of the actions that were drawn evenly
        self._played_by: nn.Module | None = None

    def begin(self, policy: nn.Module) -> None:
        """A new update begins: `policy` is the one that played."""
        if not self._parts:
            return
        if self._played_by is None:
            self._played_by = copy.deepcopy(policy).requires_grad_(False)
        else:
            self._played_by.load_state_dict(policy.state_dict())

    @torch.no_grad()
    def __call__(self, batch: Mapping[str, Any]) -> Mapping[str, Any]:
        """A policy's minibatch with other observations, and with what the policy that played says
        of the actions there.
        """
        if not self._parts:
            return batch
        seen = dict(batch)
        for part in self._parts:
            seen[Columns.OBS] = part.augment(seen[Columns.OBS])
        inputs = self._played_by.forward_train(seen)[Columns.ACTION_DIST_INPUTS]
        seen[Columns.ACTION_DIST_INPUTS] = inputs
        seen[Columns.ACTION_LOGP] = self._log_probability(inputs, seen[Columns.ACTIONS])
        return seen

    def _log_probability(self, inputs: Tensor, actions: Tensor) -> Tensor:
        """Of the actions as they were drawn."""
        policy = self._played_by.get_train_action_dist_cls().from_logits(inputs)
        chosen = policy.logp(actions)
        if not self._epsilon:
            return chosen
        return ((1 - self._epsilon) * chosen.exp() + self._epsilon / inputs.shape[-1]).log()
