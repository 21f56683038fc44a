"""The seam of auxiliary losses: all that a learner knows of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from rllib_conspec.options import Options


@dataclass(frozen=True)
class PolicyBatch:
    """A minibatch as an auxiliary loss sees it: B sequences of T steps, or B steps."""

    observations: Tensor  # [B, (T,) *shape], raw
    mask: Tensor | None  # bool [B, (T)], true on real steps; None: all are
    inputs: Tensor  # [B, (T,) A] of the action distribution, with a graph
    values: Tensor  # [B, (T)], with a graph
    # Other observations, of all rows or of those rows [b] alone → their inputs, values; `by` a
    # policy of the same kind instead of this one.
    forward: Callable[..., tuple[Tensor, Tensor]]
    kl: Callable[[Tensor, Tensor], Tensor]  # two inputs → divergence of their actions, [B, (T)]
    policy: nn.Module
    # What the policy's core gives losses [B, T, …], with a graph, and what happened before every
    # step (the last action and reward [B, T, n]), if the core reads that.
    outputs: Mapping[str, Tensor] = field(default_factory=dict)
    last: Tensor | None = None

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the real steps."""
        return values.mean() if self.mask is None else values[self.mask].mean()

    def only(self, rows: Tensor) -> PolicyBatch:
        """These sequences (or steps) of it, int [b]."""
        return PolicyBatch(
            observations=self.observations[rows],
            mask=None if self.mask is None else self.mask[rows],
            inputs=self.inputs[rows],
            values=self.values[rows],
            forward=lambda observations, **by: self.forward(observations, rows, **by),
            kl=self.kl,
            policy=self.policy,
            outputs={name: given[rows] for name, given in self.outputs.items()},
            last=None if self.last is None else self.last[rows],
        )


class AuxiliaryLoss(nn.Module):
    """A loss added to the policy's; its own parameters, if it has any, learn with the policy's."""

    Options: ClassVar[type[Options]] = Options
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    of_a_trained_policy: ClassVar[bool] = False  # makes no sense in a run that starts from nothing
    needs_core: ClassVar[str] = ""  # the name of the only core that it is for

    def __init__(self, options: Any, encoder: nn.Module) -> None:
        """`encoder` is the policy's; keep a reference in a tuple, or it counts as one's own."""
        super().__init__()
        self.options = options

    @classmethod
    def of(cls, options: Any, policy: nn.Module) -> Self:
        """The loss of this policy, which has `encoder`, `core`, and its spaces."""
        return cls(options, policy.encoder)

    @classmethod
    def check(cls, options: Any, shape: tuple[int, ...]) -> None:
        """Raise an `OptionError` where the loss does not fit observations of this shape."""

    def augment(self, observations: Tensor) -> Tensor:
        """What the policy is to learn from instead of these observations [B, (T,) *shape]; asked
        before every gradient step. PPO then compares with the policy that played, on the same.
        """
        return observations

    @property
    def augments(self) -> bool:
        return type(self).augment is not AuxiliaryLoss.augment

    @classmethod
    def shown(cls, seen: Tensor, encoder: nn.Module, generator: torch.Generator) -> Tensor:
        """What the policy, whose encoder this is, is shown of observations [E, *shape] when it
        plays to learn. Episodes keep them as they are, and PPO takes it that the policy saw that.
        """
        return seen

    @classmethod
    def shows(cls) -> bool:
        return cls.shown.__func__ is not AuxiliaryLoss.shown.__func__

    def loss(self, batch: PolicyBatch) -> Tensor | None:
        """The loss, already weighted; None: there is none, it only augments."""
        raise NotImplementedError

    def metrics(self) -> Mapping[str, Tensor]:
        """What there is to show of the last loss besides its value: name → number."""
        return {}

    @torch.no_grad()
    def after_step(self) -> None:
        """Called after every gradient step (for a momentum encoder, say)."""
