"""Check an environment id and its `env_config` by building the environment once."""

from __future__ import annotations

import importlib
import inspect
import os
import typing
from collections.abc import Mapping
from typing import Any

from rllib_conspec.cli.schema import check_keys, expected, fits, show
from rllib_conspec.errors import OptionError, did_you_mean

# Accepted by gymnasium.make for every environment, besides the entry point's own arguments.
_MAKE_ARGUMENTS = ("max_episode_steps", "disable_env_checker", "render_mode")


def check_environment(env: str, env_config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Observation and action space; an OptionError names `env` or `config.env_config.<key>`."""
    import gymnasium as gym

    spec = _find_spec(env)
    entry_point = spec.entry_point
    if isinstance(entry_point, str):
        entry_point = gym.envs.registration.load_env_creator(entry_point)
    try:
        _check_arguments(entry_point, env_config)
    except OptionError as error:
        raise error.within("config.env_config") from error
    try:
        made = gym.make(env, **env_config)
        made.close()
    except OptionError as error:
        raise error.within("config.env_config") from error
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise OptionError("config.env_config", f"{env} cannot be built: {text}") from error
    return made.observation_space, made.action_space


def _find_spec(env: str) -> Any:
    """The registered spec of "Id-v0" or "module:Id-v0"."""
    import gymnasium as gym

    module, _, name = env.rpartition(":")
    before = set(gym.registry)
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise OptionError("env", f'cannot import "{module}": {error}.') from error
    if name in gym.registry:
        return gym.registry[name]
    if name.startswith("ALE/"):
        _register_atari()
        if name in gym.registry:
            return gym.registry[name]
    own = [
        key
        for key, spec in gym.registry.items()
        if key not in before or str(spec.entry_point).split(".")[0] == module.split(".")[0]
    ]
    hint = did_you_mean(name, own if module else gym.registry)
    if hint and module:
        hint = hint.replace('"', f'"{module}:', 1)
    raise OptionError("env", f"unknown environment {show(env)}.{hint}")


def _register_atari() -> None:
    import ale_py
    import gymnasium as gym

    os.environ.setdefault("ALE_PY_SILENT", "1")
    gym.register_envs(ale_py)


def _check_arguments(entry_point: Any, env_config: Mapping[str, Any]) -> None:
    """Names and types of `env_config` against the signature of the entry point."""
    parameters = dict(inspect.signature(entry_point).parameters)
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    parameters.pop("self", None)
    check_keys(env_config, [*parameters, *_MAKE_ARGUMENTS])
    function = entry_point.__init__ if inspect.isclass(entry_point) else entry_point
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    for name, value in env_config.items():
        if name in hints and not fits(hints[name], value):
            raise OptionError(name, f"expected {expected([hints[name]])}, got {show(value)}.")
