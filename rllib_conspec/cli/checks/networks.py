"""Build the networks of a trial without memory: they fit the observations, and are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rllib_conspec.cli.checks.memory import largest
from rllib_conspec.cli.checks.schema import one_line
from rllib_conspec.errors import OptionError

DEFAULT_MODULE_ID = "default_policy"


def count_parameters(config: Any, spaces: tuple[Any, Any]) -> dict[str, float]:
    """Parameters of the policy and of every reward model, by the option that each is due to.

    `spaces` of observations and actions. An OptionError names what does not fit them.
    """
    counts = {largest("config.model_config", _model_config(config)): _of_policy(config, spaces)}
    models = config.get_reward_model(*spaces, "meta") if hasattr(config, "reward_models") else None
    for name, model in models.models.items() if models else ():
        section = _section(config, name)
        try:
            model.check()
        except OptionError as error:
            raise error.within(section) from error
        place = largest(section, model.sizes(model.options))
        counts[place] = _countable(lambda model=model: model.num_parameters)
    return counts


def _of_policy(config: Any, spaces: tuple[Any, Any]) -> float:
    try:
        return _countable(lambda: _build(config, spaces))
    except Exception as error:
        if not getattr(config, "our_networks", False):
            return 0  # connectors may change what RLlib's networks see: only it can tell
        if isinstance(error, OptionError):
            raise error.within("config.model_config") from error
        raise OptionError("config.model_config", one_line(error)) from error


def _build(config: Any, spaces: tuple[Any, Any]) -> int:
    import torch

    spec = config.get_rl_module_spec(spaces={DEFAULT_MODULE_ID: spaces})
    try:
        with torch.device("meta"):
            module = spec.build()
    except NotImplementedError:  # something in it cannot be built without its memory
        module = spec.build()
    return sum(parameter.numel() for parameter in module.parameters())


def _countable(count: Callable[[], float]) -> float:
    """The number; ∞ where torch cannot count that far."""
    try:
        return count()
    except (RuntimeError, TypeError, OverflowError) as error:
        if "overflow" not in str(error).lower():
            raise
        return math.inf


def _section(config: Any, name: str) -> str:
    """Where the options of a reward model stand."""
    return f"config.{name}" if name in config.short_forms else f"config.reward_models.{name}"


def _model_config(config: Any) -> Mapping[str, Any]:
    """What is set of `model_config`: a mapping, an object of RLlib's, or nothing."""
    given = config._model_config
    if given is None:
        return {}
    return given if isinstance(given, Mapping) else vars(given)
