"""What a policy remembers with. A new core is one file and one line here."""

from rllib_conspec.networks.cores.base import Core
from rllib_conspec.registry import Registry

REGISTRY = Registry("core", Core, {"gru": "rllib_conspec.networks.cores.gru:GRUCore"})


def build_core(name: str, inputs: int, dim: int) -> Core:
    """The core called `name` for features of size `inputs`; without memory where `dim` is 0."""
    return REGISTRY.find(name)(inputs, dim) if dim else Core(inputs, inputs)
