"""Losses that a policy may have beside its own. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.registry import Registry

REGISTRY = Registry(
    "auxiliary loss",
    AuxiliaryLoss,
    {
        "drac": "rllib_conspec.auxiliary.drac:DrAC",
        "distil": "rllib_conspec.auxiliary.distil:Distil",
        "curl": "rllib_conspec.auxiliary.curl:CURL",
        "reconstruct": "rllib_conspec.auxiliary.reconstruct:Reconstruct",
        "rad": "rllib_conspec.auxiliary.rad:RAD",
    },
)
find_loss = REGISTRY.find
options_of = REGISTRY.options_of


def shown_by(
    names: Iterable[str], encoder: nn.Module
) -> Callable[[Tensor, torch.Generator], Tensor] | None:
    """How these losses change what a policy with this encoder is shown; None if none does."""
    showing = [loss for loss in map(find_loss, names) if loss.shows()]
    if not showing:
        return None

    def shown(seen: Tensor, generator: torch.Generator) -> Tensor:
        for loss in showing:
            seen = loss.shown(seen, encoder, generator)
        return seen

    return shown
