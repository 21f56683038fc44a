"""Wrappers that give every environment the form that the rest of the package expects."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.vector import VectorEnv, VectorObservationWrapper
from gymnasium.vector.utils import batch_space, iterate


class TakeKey(gym.ObservationWrapper):
    """One entry of a Dict observation."""

    def __init__(self, env: gym.Env, key: str) -> None:
        super().__init__(env)
        self.key = key
        self.observation_space = env.observation_space[key]

    def observation(self, observation: Any) -> Any:
        return observation[self.key]


class TakeKeyOfAll(VectorObservationWrapper):
    """`TakeKey` for an environment's own vector form."""

    def __init__(self, env: VectorEnv, key: str) -> None:
        super().__init__(env)
        self.key = key
        self.single_observation_space = env.single_observation_space[key]
        self.observation_space = env.observation_space[key]

    def observations(self, observations: Any) -> Any:
        return observations[self.key]


def flat_space(space: spaces.Space) -> spaces.Box:
    """One float32 vector for everything; discrete values become one-hot."""
    flat = flatten_space(space)
    return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32), dtype=np.float32)


class Flatten(gym.ObservationWrapper):
    """Observations of any space of numbers as one float32 vector."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.observation_space = flat_space(env.observation_space)

    def observation(self, observation: Any) -> np.ndarray:
        return flatten(self.env.observation_space, observation).astype(np.float32)


class FlattenAll(VectorObservationWrapper):
    """`Flatten` for an environment's own vector form."""

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        self.single_observation_space = flat_space(env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: Any) -> np.ndarray:
        each = iterate(self.env.observation_space, observations)
        space = self.env.single_observation_space
        return np.stack([flatten(space, one) for one in each]).astype(np.float32)


class TimeLimit(gym.wrappers.TimeLimit):
    """Gymnasium's, but an episode that ends by itself at the limit has not been cut off."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated and not terminated, info


class SeededResets(gym.Wrapper):
    """Every episode has a seed of its own, in `info["reset_seed"]` of its reset.

    `reset(seed=s)` begins a sequence that depends on s alone; this reset and each later one
    without a seed, also a vector environment's automatic one, takes the next seed of it. So each
    episode can be played again by itself, from its seed and its actions.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._seeds: np.random.Generator | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None or self._seeds is None:
            self._seeds = np.random.default_rng(seed)
        # 31 bits: what every environment takes for a seed, whatever it is written in.
        drawn = int(self._seeds.integers(2**31))
        observation, info = self.env.reset(seed=drawn, options=options)
        return observation, {**info, "reset_seed": drawn}


def attribute(env: gym.Env, name: str, default: Any = None) -> Any:
    """An attribute of an environment or of a wrapper around it."""
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else default
