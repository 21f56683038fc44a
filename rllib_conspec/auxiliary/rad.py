"""The policy learns from pictures that are a little changed: RAD (Laskin et al., 2020).

No loss is added: what is changed is what the learner sees of the episodes, anew in every gradient
step. Workers play with the pictures as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss, PolicyBatch
from rllib_conspec.auxiliary.drac import shift_colours
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.augmenting import cut_out, pad_for, shift
from rllib_conspec.options import Options, option

CHANGES = ("crop", "cutout", "colours")


@dataclass(frozen=True)
class RADOptions(Options):
    change: str = option(
        "crop",
        "what is done to pictures before the policy learns from them: `crop` moves them by up to "
        "`pad` pixels, `cutout` hides a rectangle, `colours` swaps and bends their colours",
        choices=CHANGES,
    )
    pad: int | None = option(
        None,
        "of `crop`: pixels by which pictures are moved at most; null is a fourteenth of a side: a "
        "crop of 84×84 out of 96×96",
        min=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad is not None and self.change != "crop":
            raise OptionError("pad", f"is for change crop, not {self.change}; leave it out.")


class RAD(AuxiliaryLoss):
    """The policy learns from pictures that are moved, partly hidden, or in other colours."""

    Options = RADOptions

    def __init__(self, options: RADOptions, encoder: nn.Module) -> None:
        super().__init__(options, encoder)
        # The encoder's first layer knows how the raw pictures are to be read.
        first = next(m for m in encoder.modules() if hasattr(m, "observation_range"))
        self.brightest, self.channels = float(first.observation_range), first.channels

    @classmethod
    def check(cls, options: RADOptions, shape: tuple[int, ...]) -> None:
        pad_for(shape, options.pad)

    def augment(self, observations: Tensor) -> Tensor:
        if self.options.change == "cutout":
            return cut_out(observations, self.channels)
        if self.options.change == "colours":
            return shift_colours(observations, self.brightest, self.channels)
        pad = pad_for(tuple(observations.shape[-3:]), self.options.pad)
        return shift(observations, pad, self.channels)

    def loss(self, batch: PolicyBatch) -> None:
        """None besides the policy's own."""
