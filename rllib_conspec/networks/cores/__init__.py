"""What a policy remembers with. A new core is one file and one line here."""

from collections.abc import Mapping
from typing import Any

from rllib_conspec.networks.cores.base import Core
from rllib_conspec.registry import Registry

REGISTRY = Registry(
    "core",
    Core,
    {
        "gru": "rllib_conspec.networks.cores.gru:GRUCore",
        "rims": "rllib_conspec.networks.cores.rims:RIMsCore",
        "rma": "rllib_conspec.networks.cores.rma:RMACore",
    },
)
find_core = REGISTRY.find
options_of = REGISTRY.options_of


def core_class(name: str, dim: int) -> type[Core]:
    """What `name` stands for; where `dim` is 0, the core without memory."""
    return find_core(name) if dim else Core


def build_core(
    name: str, inputs: int, dim: int, options: Mapping[str, Any] | None = None, last: int = 0
) -> Core:
    """The core called `name` for features of size `inputs`; without memory where `dim` is 0.

    `last` is the number of values that tell a last action and reward: a core that reads them gets
    so many more inputs.
    """
    kind = core_class(name, dim)
    if kind is Core:
        return Core(inputs, inputs)
    return kind(inputs + last * kind.reads_last, dim, options_of(name, options or {}))
