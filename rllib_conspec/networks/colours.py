"""Pictures in other colours, for policies that should not mind them.

Channels are swapped, and in each the values above some threshold are inverted: nothing, everything,
or only what is bright (known as solarising). What lies where stays as it was.
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
    # Below 0 for a quarter of the channels (all is inverted), above 255 for another (nothing is).
    threshold = torch.rand(count, channels, device=device) * 512 - 128
    ones = [1] * (frames.dim() - 2)
    swapped = frames.gather(-1, order.view(count, *ones, channels).expand(frames.shape))
    threshold = threshold.floor().to(torch.int16).view(count, *ones, channels)
    return torch.where(swapped > threshold, 255 - swapped, swapped)
