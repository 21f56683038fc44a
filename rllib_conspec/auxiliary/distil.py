"""A trained policy learns to act in colours that it has never seen.

It has a teacher: itself, as it was when this began. On its own pictures and on the same ones in
other colours it is to act as the teacher does on the pictures as they are. The teacher stays the
same; the target of `drac` is the policy of the moment, and with a weight that teaches colours well
policies learned slowly with it, or lost what they could (docs/orangetree.md).

It is for a run that starts from a checkpoint; from scratch there is nothing worth keeping.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.auxiliary.drac import DrAC
from rllib_conspec.options import Options, option

# Radians that a channel moves by, from dark to bright of another one.
SLOWEST, FASTEST = 2.0, 6.0


@dataclass(frozen=True)
class DistilOptions(Options):
    coeff: float = option(
        3.0,
        "weight of a loss that keeps the policy what it was at the beginning of the run, on its "
        "pictures and on the same in other colours",
        above=0.0,
    )


class Distil(DrAC):
    """How far the policy is from its teacher, in the colours that are and in others."""

    Options = DistilOptions

    def __init__(self, options: DistilOptions, encoder: nn.Module) -> None:
        super().__init__(options, encoder)
        self._teacher: tuple[nn.Module, ...] = ()  # in a tuple: not a part that learns
        self._restored: dict[str, Tensor] = {}

    def loss(self, batch: PolicyBatch) -> Tensor:
        with torch.no_grad():
            target, _ = batch.forward(batch.observations, by=self._teacher_of(batch.policy))
        inputs, _ = batch.forward(repaint(batch.observations, **self.view))
        change = batch.kl(target, batch.inputs) + batch.kl(target, inputs)
        return self.options.coeff * batch.mean(change)

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


def repaint(frames: Tensor, brightest: float = 255.0, channels: str = "last") -> Tensor:
    """Raw pictures (0..brightest) [N, …, height, width, channels], each of the N in colours of its
    own: sin(colour · weight + phase). With `channels` first, [N, …, channels, height, width].

    A sequence [N, T, …] keeps its colours from step to step. Draws from torch's global generator,
    which learners seed for every update.
    """
    if channels == "first":
        return repaint(frames.movedim(-3, -1), brightest).movedim(-1, -3)
    weight, phase = draw_waves(frames.shape[0], frames.shape[-1], frames.device)
    pixels = frames.flatten(1, -2).to(weight.dtype)
    waves = torch.baddbmm(phase, pixels, weight / brightest).sin_()
    return waves.mul_(brightest / 2).add_(brightest / 2).to(frames.dtype).view(frames.shape)


def draw_waves(count: int, depth: int, device: torch.device | None) -> tuple[Tensor, Tensor]:
    """Weights [N, channels, channels] and phases [N, 1, channels], for colours in 0..1.

    A function of all channels together, not of each alone: then wall, floor and things take
    colours that have nothing to do with each other, which is what other colours will be like. How
    fast it changes differs from picture to picture, between the shades of a thing, which are to
    stay alike, and different things, which are not.
    """
    speed = SLOWEST * (FASTEST / SLOWEST) ** torch.rand(count, 1, 1, device=device)
    weight = speed * (3 / depth) ** 0.5 * torch.randn(count, depth, depth, device=device)
    return weight, 2 * math.pi * torch.rand(count, 1, depth, device=device)
