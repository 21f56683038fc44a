"""Vectors of unbounded components, brought to one scale: networks learn badly from others.

Mean and deviation of every component are buffers of the encoder that uses them. So they travel and
are saved with its weights: whoever holds these weights, on a worker, in a checkpoint or in a
snapshot of the reward models, reads observations exactly as the one who trained them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LARGEST = 10.0  # deviations from the mean; what lies further away is cut off
# A component that never changed has no scale: it is shifted, and divided by this.
LEAST = 1e-2


class Normalize(nn.Module):
    """Observations [N, …] → [N, n], (x − mean) / deviation of all that was ever observed."""

    def __init__(self, size: int) -> None:
        super().__init__()
        # Tensors of one element: RLlib turns those without dimensions into Python numbers.
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))

    def forward(self, observations: Tensor) -> Tensor:
        x = observations.flatten(1) - self.mean
        return (x / self.variance.sqrt().clamp_min(LEAST)).clamp(-LARGEST, LARGEST)

    @torch.no_grad()
    def observe(self, observations: Tensor) -> None:
        """Take in observations [N, …] that were played."""
        x = observations.to(self.mean).flatten(1)
        count, total = len(x), self.count + len(x)
        shift = x.mean(dim=0) - self.mean
        # Chan's rule for the moments of two samples together.
        squares = self.count * self.variance + count * x.var(dim=0, correction=0)
        squares += shift.square() * (self.count * count / total)
        self.mean += shift * (count / total)
        self.variance.copy_(squares / total)
        self.count.copy_(total)


def observe(network: nn.Module, observations: Tensor) -> None:
    """Have all that normalises in `network` take in these observations."""
    for module in network.modules():
        if isinstance(module, Normalize):
            module.observe(observations)


def normalizes(network: nn.Module) -> bool:
    return any(isinstance(module, Normalize) for module in network.modules())
