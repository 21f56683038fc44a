"""Algorithms by name: RLlib's, ours, and what a user has registered with Tune."""

from __future__ import annotations

import inspect
from typing import Any

from rllib_conspec.annotations import show
from rllib_conspec.errors import OptionError, did_you_mean


def find_algorithm(run: Any) -> type:
    """The Algorithm class of a registered name such as "PPO" (a class is returned as it is)."""
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.registry import ALGORITHMS
    from ray.tune.registry import TRAINABLE_CLASS, _global_registry, get_trainable_cls

    from rllib_conspec.algorithm import OFFLINE

    if inspect.isclass(run):
        return run
    names = [*ALGORITHMS, *our_algorithms(), *OFFLINE]
    if not isinstance(run, str):
        raise OptionError("run", f"expected the name of an algorithm, got {show(run)}.")
    if run not in names and not _global_registry.contains(TRAINABLE_CLASS, run):
        raise OptionError("run", f"unknown algorithm {show(run)}.{did_you_mean(run, names)}")
    try:
        algorithm = get_trainable_cls(run)
    except ImportError as error:
        raise OptionError("run", f"{run} cannot be imported: {error}") from error
    if not (inspect.isclass(algorithm) and issubclass(algorithm, Algorithm)):
        raise OptionError("run", f"{show(run)} is not an RLlib algorithm.")
    return algorithm


def our_algorithms() -> dict[str, type]:
    """Those that take reward models, by the names that importing them registers."""
    from rllib_conspec.algorithm import ALGORITHMS

    return ALGORITHMS
