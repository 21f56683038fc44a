"""Losses that a policy may have beside its own. A new one is one file and one line here."""

from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.registry import Registry

REGISTRY = Registry(
    "auxiliary loss",
    AuxiliaryLoss,
    {
        "drac": "rllib_conspec.auxiliary.drac:DrAC",
        "distil": "rllib_conspec.auxiliary.distil:Distil",
        "curl": "rllib_conspec.auxiliary.curl:CURL",
        "rad": "rllib_conspec.auxiliary.rad:RAD",
    },
)
find_loss = REGISTRY.find
options_of = REGISTRY.options_of
