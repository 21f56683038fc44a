"""From what a user writes as `env` to Gymnasium's specification of the environment."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.importing import import_module

Env = str | Callable[[dict[str, Any]], gym.Env]


class FromConfig:
    """An entry point for a class or function that is called as RLlib does: with one dict."""

    def __init__(self, make: Callable[[dict[str, Any]], gym.Env]) -> None:
        self.make = make

    def __call__(self, env_config: dict[str, Any]) -> gym.Env:
        return self.make(env_config)


def name_of(env: Env) -> str:
    """How messages call the environment."""
    return env if isinstance(env, str) else getattr(env, "__name__", type(env).__name__)


def find(env: Env) -> EnvSpec:
    """The specification that `gymnasium.make` takes; an OptionError names `env`.

    An import path is registered as `module/Class-v0`, once in every process that asks.
    """
    if not isinstance(env, str):
        if not callable(env):
            raise OptionError("env", f"must be an id, an import path or a class, not {env!r}.")
        # Ids have no brackets, the names of lambdas have.
        return EnvSpec(id=name_of(env).strip("<>"), entry_point=FromConfig(env))
    path, _, name = env.rpartition(":")
    before = set(gym.registry)
    module = _import(path) if path else None
    if name.startswith("ALE/"):
        _register_atari()
    if name in gym.registry:
        return gym.registry[name]
    if module is not None and hasattr(module, name):
        return _registered(path, name, getattr(module, name))
    raise OptionError("env", f'unknown environment "{env}".' + _hint(path, name, module, before))


def _import(path: str) -> ModuleType:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        files = [entry[:-3] for entry in os.listdir() if entry.endswith(".py")]
        hint = did_you_mean(path, files) if error.name == path else ""
        raise OptionError("env", f'cannot import "{path}": {error}.{hint}') from error
    except ImportError as error:
        raise OptionError("env", f'cannot import "{path}": {error}.') from error
    except Exception as error:  # whatever the user's module raises
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise OptionError("env", f'cannot import "{path}": {text}.') from error


def _register_atari() -> None:
    os.environ.setdefault("ALE_PY_SILENT", "1")
    import ale_py

    gym.register_envs(ale_py)


def _registered(path: str, name: str, found: Any) -> EnvSpec:
    """The specification of `found`, the class or function `name` of module `path`."""
    if inspect.isclass(found) and not issubclass(found, gym.Env):
        raise OptionError("env", f'"{path}:{name}" is not an environment: derive it from gym.Env.')
    if not callable(found):
        raise OptionError("env", f'"{path}:{name}" is neither an environment nor makes one.')
    # Gymnasium allows no dots before the slash.
    id = f"{path.replace('.', '-')}/{name}-v0"
    if id not in gym.registry:
        gym.register(id, entry_point=f"{path}:{name}")
    return gym.registry[id]


def _hint(path: str, name: str, module: ModuleType | None, before: set[str]) -> str:
    """The nearest name, among those of the module if there is one."""
    if module is None:
        return did_you_mean(name, gym.registry)
    ids = [
        id
        for id, spec in gym.registry.items()
        if id not in before or re.split("[.:]", str(spec.entry_point))[0] == path.split(".")[0]
    ]
    classes = [
        key
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, gym.Env) and value is not gym.Env
    ]
    return did_you_mean(name, ids + classes).replace('"', f'"{path}:', 1)
