"""What RMA stores must tell what it was made of: its reconstruction losses (arXiv 1810.06721).

From z_t alone, the observation, the last action and the last reward are to be told; and heads are
to ask no more loudly than they need to:

    loss = image · d(x̂_t, x_t) + action · d(â_t−1, a_t−1) + reward · ½ (r̂_t−1 − r_t−1)²
         + strength · mean over heads of max(0, β_t − tolerance)

d is the cross-entropy of each value between 0 and 1 in a picture, and of one of n actions; of
numbers it is half the squared error. All are means over values and steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_conspec.auxiliary.base import AuxiliaryLoss, PolicyBatch
from rllib_conspec.networks.encoders import orthogonal, picture_sides
from rllib_conspec.networks.normalizing import Normalize
from rllib_conspec.options import Options, option

SIDE = 21  # pixels of a side of what is told of a larger picture: a quarter of 84


@dataclass(frozen=True)
class ReconstructOptions(Options):
    image: float = option(1.0, "weight of what is seen (paper: 50)", min=0.0)
    action: float = option(1.0, "weight of the last action", min=0.0)
    reward: float = option(1.0, "weight of the last reward", min=0.0)
    strength: float = option(
        0.05, "weight of read strengths above `tolerance` (paper: 50)", min=0.0
    )
    tolerance: float = option(2.0, "read strength that costs nothing", min=0.0)
    hidden: int = option(128, "width of the layer between z and what is seen", min=1)


class Reconstruct(AuxiliaryLoss):
    """How much RMA's memory rows leave out of what they are of, and how loudly it asks."""

    Options = ReconstructOptions
    needs_core = "rma"

    def __init__(self, options: ReconstructOptions, policy: nn.Module) -> None:
        super().__init__(options, policy.encoder)
        # The encoder's first layer knows how the raw observations are to be read.
        parts = list(policy.encoder.modules())
        self._first = (next(m for m in parts if hasattr(m, "channels")),)
        self._scale = tuple(m for m in parts if isinstance(m, Normalize))
        width = policy.core.options.width
        self.discrete = isinstance(policy.action_space, spaces.Discrete)
        shape = tuple(policy.observation_space.shape)
        self.picture = len(shape) == 3
        numbers = math.prod(shape)
        if self.picture:
            high, wide, depth = picture_sides(shape, self._first[0].channels)
            numbers = depth * min(high, SIDE) * min(wide, SIDE)
        self.see = nn.Sequential(
            orthogonal(nn.Linear(width, options.hidden)),
            nn.ReLU(),
            orthogonal(nn.Linear(options.hidden, numbers), gain=1.0),
        )
        self.recall = orthogonal(nn.Linear(width, policy.get_initial_state()["last"].numel()))
        self._parts: dict[str, Tensor] = {}

    @classmethod
    def of(cls, options: ReconstructOptions, policy: nn.Module) -> Reconstruct:
        return cls(options, policy)

    def loss(self, batch: PolicyBatch) -> Tensor:
        o, z = self.options, batch.outputs["z"]
        told = self.recall(z)
        action, reward = told[..., :-1], told[..., -1]
        excess = F.relu(batch.outputs["read_strengths"] - o.tolerance).mean(-1)
        parts = {
            "image": self._image(self.see(z), batch.observations),
            "action": self._action(action, batch.last[..., :-1]),
            "reward": 0.5 * (reward - batch.last[..., -1]).square(),
            "strength": excess,
        }
        means = {name: batch.mean(part) for name, part in parts.items()}
        self._parts = {name: mean.detach() for name, mean in means.items()}
        return sum(getattr(o, name) * mean for name, mean in means.items())

    def metrics(self) -> dict[str, Tensor]:
        """Each part of the loss, without its weight."""
        return self._parts

    def _image(self, told: Tensor, observations: Tensor) -> Tensor:
        """[B, T]"""
        steps = observations.shape[:2]
        seen = self._seen(observations.flatten(0, 1)).unflatten(0, steps)
        if self.picture:
            # Less what is left when all is told right.
            least = F.binary_cross_entropy(seen, seen, reduction="none")
            found = F.binary_cross_entropy_with_logits(told, seen, reduction="none")
            return (found - least).mean(-1)
        return 0.5 * (told - seen).square().mean(-1)

    @torch.no_grad()
    def _seen(self, observations: Tensor) -> Tensor:
        """What is to be told of raw observations [N, *shape]: [N, numbers], of pictures 0 … 1."""
        first = self._first[0]
        if not self.picture:
            flat = observations.float().flatten(1)
            for normalize in self._scale:
                flat = normalize(flat)
            return flat / first.observation_range.to(flat)
        pixels = observations.float() / first.observation_range.to(observations.device)
        if first.channels != "first":
            pixels = pixels.movedim(-1, 1)
        sides = [min(side, SIDE) for side in pixels.shape[-2:]]
        return F.adaptive_avg_pool2d(pixels, sides).clamp(0, 1).flatten(1)

    def _action(self, told: Tensor, done: Tensor) -> Tensor:
        """[B, T]; before the first step nothing was done, and nothing is to be told."""
        if self.discrete:
            return -(done * told.log_softmax(-1)).sum(-1)
        return 0.5 * (told - done).square().mean(-1)
