"""A policy that does the same in other colours: the regulariser of DrAC (Raileanu et al., 2021).

Channels are swapped, and in each the values above some threshold are inverted: nothing, everything,
or only what is bright (known as solarising). What lies where stays as it was. It costs a second
pass of the policy over every minibatch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss, PolicyBatch
from rllib_conspec.errors import OptionError
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class DrACOptions(Options):
    coeff: float = option(
        0.2,
        "weight of a loss that keeps policy and value the same on pictures with swapped and "
        "inverted colours",
        above=0.0,
    )


class DrAC(AuxiliaryLoss):
    """How far policy and value change when the pictures are seen in other colours.

    What the policy does on the pictures as they are is the target, so that the RL gradient itself
    is not touched.
    """

    Options = DrACOptions

    def __init__(self, options: DrACOptions, encoder: nn.Module) -> None:
        super().__init__(options, encoder)
        # The encoder's first layer knows how the raw pictures are to be read.
        first = next(m for m in encoder.modules() if hasattr(m, "observation_range"))
        self.view = {"brightest": float(first.observation_range), "channels": first.channels}

    @classmethod
    def check(cls, options: DrACOptions, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise OptionError("coeff", "is for pictures, and these observations are vectors.")

    def loss(self, batch: PolicyBatch) -> Tensor:
        inputs, values = batch.forward(shift_colours(batch.observations, **self.view))
        change = batch.kl(batch.inputs.detach(), inputs)
        change = change + 0.5 * (batch.values.detach() - values) ** 2
        return self.options.coeff * batch.mean(change)


def shift_colours(frames: Tensor, brightest: float = 255.0, channels: str = "last") -> Tensor:
    """Raw pictures (0..brightest) [N, …, height, width, channels], each of the N in colours of its
    own; with `channels` first, [N, …, channels, height, width].

    A sequence [N, T, …] keeps its colours from step to step. Draws from torch's global generator,
    which learners seed for every update.
    """
    if channels == "first":
        return shift_colours(frames.movedim(-3, -1), brightest).movedim(-1, -3)
    count, depth = frames.shape[0], frames.shape[-1]
    device = frames.device
    order = torch.rand(count, depth, device=device).argsort(-1)
    # Below 0 for a quarter of the channels (all is inverted), above the brightest for another
    # (nothing is).
    threshold = (torch.rand(count, depth, device=device) * 512 - 128) * (brightest / 255)
    if not frames.is_floating_point():
        threshold, brightest = threshold.floor().to(torch.int16), int(brightest)
    ones = [1] * (frames.dim() - 2)
    swapped = frames.gather(-1, order.view(count, *ones, depth).expand(frames.shape))
    return torch.where(swapped > threshold.view(count, *ones, depth), brightest - swapped, swapped)
