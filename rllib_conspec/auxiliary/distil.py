"""A trained policy learns to act in colours that it has never seen.

It has a teacher: itself, as it was when this began. On its own pictures and on the same ones in
other colours it is to act as the teacher does on the pictures as they are, with less doubt: the
chances that a policy leaves to other actions to explore are not worth keeping when that is over,
and what is lost in other colours is mostly lost to them (docs/orangetree.md). It learns from the
teacher's chances as they are, which say more than its choices, and acts by them squared: the
temperature of Hinton's distillation. Half of the environments are played in other colours, too:
what it does wrong there leads to places where the teacher never was, and from which it has to learn
to go on. The teacher stays the same; the target of `drac` is the policy of the moment, and with a
weight that teaches colours well policies learned slowly with it, or lost what they could
(docs/orangetree.md).

It is for a run that starts from a checkpoint; from scratch there is nothing worth keeping.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.auxiliary.drac import DrAC, view_of
from rllib_conspec.networks.palette import repaint
from rllib_conspec.options import Options, option

# The policy's probabilities are the teacher's to this power: what that held twice as likely is done
# four times as often.
SHARPNESS = 2.0


@dataclass(frozen=True)
class DistilOptions(Options):
    coeff: float = option(
        30.0,
        "weight of a loss that keeps the policy what it was at the beginning of the run, with less "
        "doubt, on its pictures and on the same in other colours",
        above=0.0,
    )


class Distil(DrAC):
    """How far the policy is from its teacher, in the colours that are and in others."""

    Options = DistilOptions
    of_a_trained_policy = True

    def __init__(self, options: DistilOptions, encoder: nn.Module) -> None:
        super().__init__(options, encoder)
        self._teacher: tuple[nn.Module, ...] = ()  # in a tuple: not a part that learns
        self._restored: dict[str, Tensor] = {}

    @classmethod
    def shown(cls, seen: Tensor, encoder: nn.Module, generator: torch.Generator) -> Tensor:
        """Half of the environments in other colours, new ones at every step."""
        half, rest = seen.split([-(-len(seen) // 2), len(seen) // 2])
        return torch.cat([repaint(half, **view_of(encoder), generator=generator), rest])

    def loss(self, batch: PolicyBatch) -> Tensor:
        with torch.no_grad():
            target, _ = batch.forward(batch.observations, by=self._teacher_of(batch.policy))
        inputs, _ = batch.forward(self._painted(batch))
        change = sum(
            batch.kl(target, doubtful(own, batch.policy.action_space))
            for own in (batch.inputs, inputs)
        )
        return self.options.coeff * batch.mean(change)

    def _painted(self, batch: PolicyBatch) -> Tensor:
        """Every picture in colours of its own. One palette for each of a few episodes would be too
        few of them in a gradient step (docs/orangetree.md).
        """
        seen = batch.observations
        alone = seen if batch.values.dim() == 1 else seen.flatten(0, 1)
        return repaint(alone, **self.view).view(seen.shape)

    def _teacher_of(self, policy: nn.Module) -> nn.Module:
        """The policy as it was at the first loss; of a restored run, of the run before."""
        if not self._teacher:
            teacher = copy.deepcopy(policy).requires_grad_(False)
            if self._restored:
                teacher.load_state_dict(self._restored)
            self._teacher = (teacher,)
        return self._teacher[0]

    def get_extra_state(self) -> dict[str, Any]:
        return {"teacher": self._teacher[0].state_dict() if self._teacher else {}}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self._teacher, self._restored = (), state["teacher"]


def doubtful(inputs: Tensor, actions: spaces.Space) -> Tensor:
    """Inputs [..., A] of the distribution whose density, to the power SHARPNESS, is that of these,
    up to its scale: logits over it; of a normal one, the same mean and a larger deviation.
    """
    if isinstance(actions, spaces.Discrete):
        return inputs / SHARPNESS
    mean, log_deviation = inputs.chunk(2, dim=-1)
    return torch.cat([mean, log_deviation + 0.5 * math.log(SHARPNESS)], dim=-1)
