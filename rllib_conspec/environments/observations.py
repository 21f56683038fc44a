"""Which part of an observation is used, and in which form: networks here take one array."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from rllib_conspec.environments.wrappers import Flatten, FlattenAll, TakeKey, TakeKeyOfAll
from rllib_conspec.errors import OptionError, did_you_mean

_NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


def shaped(env: gym.Env | VectorEnv, key: str | None) -> gym.Env | VectorEnv:
    """The environment with Box observations: `key` taken out of a Dict, the rest flattened.

    OptionErrors name `observation_key` or `env`.
    """
    many = isinstance(env, VectorEnv)
    space = env.single_observation_space if many else env.observation_space
    if key is not None:
        _check_key(space, key)
        env = TakeKeyOfAll(env, key) if many else TakeKey(env, key)
        space = space[key]
    if isinstance(space, spaces.Box) and space.shape:
        return env
    if not _can_be_flattened(space):
        _refuse(space, key)
    return FlattenAll(env) if many else Flatten(env)


def is_picture(space: spaces.Space) -> bool:
    """Whether neighbours in the array are neighbours in what it shows, as far as can be told."""
    if not isinstance(space, spaces.Box):
        return False
    return len(space.shape) > 2 or (len(space.shape) == 2 and space.dtype.kind in "iub")


def is_unbounded(space: spaces.Box) -> bool:
    """Whether it is a vector with a component of which nobody says how large it may get."""
    return not is_picture(space) and not space.is_bounded("both")


def channels_of(shape: Sequence[int]) -> str:
    """Where the channels of a picture of this shape are: "last", "first", or "" for no telling.

    They are taken for the smallest of the three sides. "last" for what is not a picture.
    """
    if len(shape) != 3 or shape[2] < min(shape[0], shape[1]):
        return "last"
    return "first" if shape[0] < min(shape[1], shape[2]) else ""


def _check_key(space: spaces.Space, key: str) -> None:
    if not isinstance(space, spaces.Dict):
        kind = type(space).__name__
        raise OptionError(
            "observation_key", f"the observations of this environment are a {kind}, not a Dict."
        )
    if key not in space.spaces:
        raise OptionError(
            "observation_key",
            f'"{key}" is not in the observations, which have {", ".join(space)}.'
            + did_you_mean(key, space),
        )


def _can_be_flattened(space: spaces.Space) -> bool:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.values() if isinstance(space, spaces.Dict) else space
        return all(_can_be_flattened(part) for part in parts)
    return isinstance(space, _NUMBERS) and not is_picture(space)


def _refuse(space: spaces.Space, key: str | None) -> None:
    if not isinstance(space, spaces.Dict) or key is not None:
        what = f'observation "{key}"' if key is not None else "the observations"
        raise OptionError(
            "env" if key is None else "observation_key",
            f"{what} of this environment cannot be made one array ({type(space).__name__}); "
            "wrap the environment so that it gives a Box.",
        )
    pictures = [name for name, part in space.items() if is_picture(part)]
    usable = [name for name, part in space.items() if _can_be_flattened(part)]
    advice = [f"observation_key: {name}" for name in (pictures + usable)[:1]]
    raise OptionError(
        "observation_key",
        f"observations are a Dict of {', '.join(space)}; set the one to use"
        + (f", for example {advice[0]}." if advice else "."),
    )
