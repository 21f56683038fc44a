"""Pictures in other colours, for policies that should not mind them.

Channels are swapped and inverted at random: what lies where, every edge and every difference within
a channel stays as it was, and only the names of the colours change.
"""

from __future__ import annotations

import torch
from torch import Tensor


def shift_colours(frames: Tensor) -> Tensor:
    """Raw pictures (0..255) [N, …, height, width, channels], each of the N in colours of its own.

    A sequence [N, T, …] keeps its colours from step to step. Draws from torch's global generator,
    which learners seed for every update.
    """
    count, channels = frames.shape[0], frames.shape[-1]
    device = frames.device
    order = torch.rand(count, channels, device=device).argsort(-1)
    inverted = torch.rand(count, channels, device=device) < 0.5
    ones = [1] * (frames.dim() - 2)
    swapped = frames.gather(-1, order.view(count, *ones, channels).expand(frames.shape))
    return torch.where(inverted.view(count, *ones, channels), 255 - swapped, swapped)
