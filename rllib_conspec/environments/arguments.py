"""`env_config` against what the environment takes: names and types, before it is built."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium.envs.registration import EnvSpec, load_env_creator

from rllib_conspec.annotations import expected, fits, show
from rllib_conspec.environments.finding import FromConfig
from rllib_conspec.errors import OptionError, did_you_mean

# Accepted by gymnasium.make for every environment, besides the entry point's own arguments.
MAKE_ARGUMENTS = {"max_episode_steps": int, "disable_env_checker": bool, "render_mode": str | None}
# The first parameter of classes that are written for RLlib, which calls them with one dict.
_ONE_DICT = ("config", "env_config", "env_context")


def entry_point(spec: EnvSpec, *, vector: bool = False) -> Callable | None:
    """The class or function that makes one environment, or many at once."""
    found = spec.vector_entry_point if vector else spec.entry_point
    return load_env_creator(found) if isinstance(found, str) else found


def parameters_of(entry: Callable) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(entry).parameters)


def check_arguments(spec: EnvSpec, env_config: Mapping[str, Any], *, vector: bool = False) -> None:
    """Raise an OptionError for the first key that is unknown or of another type."""
    entry = entry_point(spec, vector=vector)
    parameters = parameters_of(entry)
    kinds = [p.kind for p in parameters.values()]
    if isinstance(entry, FromConfig) or inspect.Parameter.VAR_KEYWORD in kinds:
        return
    if _takes_one_dict(parameters, env_config):
        return
    known = [*parameters, *MAKE_ARGUMENTS]
    others = _other_names(spec, vector)
    for name in env_config:
        if name in others and name not in known:
            form = "single" if vector else "vector"
            raise OptionError(name, f"only the {form} form takes it, which does not fit here.")
        if name not in known:
            hint = did_you_mean(str(name), [*known, *others])
            raise OptionError(str(name), f"unknown option.{hint}")
    hints = MAKE_ARGUMENTS | _hints(entry)
    for name, value in env_config.items():
        if name in hints and not fits(hints[name], value):
            raise OptionError(name, f"expected {expected([hints[name]])}, got {show(value)}.")


def _other_names(spec: EnvSpec, vector: bool) -> list[str]:
    """What the other form takes: Atari's vector form has options that its single form has not."""
    other = entry_point(spec, vector=not vector)
    return [] if other is None else list(parameters_of(other))


def _hints(entry: Callable) -> dict[str, Any]:
    try:
        return typing.get_type_hints(entry.__init__ if inspect.isclass(entry) else entry)
    except (NameError, TypeError):
        return {}


def _takes_one_dict(
    parameters: Mapping[str, inspect.Parameter], env_config: Mapping[str, Any]
) -> bool:
    """Whether `env_config` can only be meant as a whole, for the first parameter."""
    first = next(iter(parameters.values()), None)
    if first is None or first.name not in _ONE_DICT or set(env_config) & set(parameters):
        return False
    return bool(env_config) or first.default is first.empty


def arguments(
    spec: EnvSpec, env_config: Mapping[str, Any], render_mode: str | None = None
) -> dict[str, Any]:
    """Keyword arguments for `gymnasium.make`.

    A `render_mode` is passed on only to who knows it: the others are made without, and then have
    none themselves.
    """
    parameters = parameters_of(entry_point(spec))
    whole = next(iter(parameters), "")
    if isinstance(spec.entry_point, FromConfig) or _takes_one_dict(parameters, env_config):
        if render_mode is not None:
            env_config = copy.copy(env_config)
            env_config["render_mode"] = render_mode
        return {whole: env_config}
    given = dict(env_config)
    if render_mode is not None and _renders(spec, parameters, render_mode):
        given["render_mode"] = render_mode
    return given


def _renders(spec: EnvSpec, parameters: Mapping[str, inspect.Parameter], mode: str) -> bool:
    known = getattr(entry_point(spec), "metadata", {}).get("render_modes", [mode])
    takes = any(p.name == "render_mode" or p.kind is p.VAR_KEYWORD for p in parameters.values())
    return takes and mode in known
