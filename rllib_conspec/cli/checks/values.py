"""Mistakes that can stand at any depth of `config`: numbers that are none, `grid_serach`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rllib_conspec.cli.checks.space import (
    GRID,
    WORDS,
    is_drawn,
    is_grid,
    is_sampler,
    possible,
)
from rllib_conspec.errors import OptionError, did_you_mean

# Options that infinity switches off. Besides them it is allowed where it is the default.
MAY_BE_INFINITE = ("vf_clip_param",)


def check_finite(config: Mapping[str, Any], infinite: Collection[str] = ()) -> None:
    """Refuse nan and infinity; options in `infinite` have +∞ as their default and may keep it.

    RLlib trains with any number: a policy of nan fails much later, or never.
    """
    allowed = {*MAY_BE_INFINITE, *infinite}
    for path, value in _leaves(config):
        if not isinstance(value, float) or math.isfinite(value):
            continue
        # The paths of values in a grid_search or choice are those of the option itself.
        if not (value == math.inf and path in allowed):
            raise OptionError(path, f"must be a finite number, not {value}.")


def infinite_options(config: Mapping[str, Any]) -> list[str]:
    """Paths of the options that are +∞ in `config`."""
    return [
        path for path, value in _leaves(config) if isinstance(value, float) and value == math.inf
    ]


def check_samplers(config: Any, path: str = "") -> None:
    """Refuse samplers whose values make no sense, and mappings that are misspelt ones."""
    if path and (is_sampler(config) or not isinstance(config, (Mapping, list, tuple))):
        values = possible(path, config)
        if is_grid(config):
            for value in values:
                check_samplers(value, f"{path}.{GRID}")
    elif isinstance(config, Mapping):
        if path and len(config) == 1:
            (key,) = config
            if hint := did_you_mean(str(key), WORDS, cutoff=0.8):
                raise OptionError(f"{path}.{key}", f"unknown option.{hint}")
        for key, value in config.items():
            check_samplers(value, f"{path}.{key}" if path else str(key))
    elif isinstance(config, (list, tuple)):
        for value in config:
            if is_sampler(value) or is_drawn(value):
                raise OptionError(path, "a list has a sampler in it; draw whole lists, by choice.")
            check_samplers(value, path)


def _leaves(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in nested mappings and lists, with the path of the option it belongs to."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            own = path and is_sampler(config)
            inner = path if own else f"{path}.{key}" if path else str(key)
            yield from _leaves(value, inner)
    elif isinstance(config, (list, tuple)):
        for value in config:
            yield from _leaves(value, path)
    else:
        yield path, config
