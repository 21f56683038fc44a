"""How large the values of observations are, found by playing at random.

The type of an array does not tell: MiniGrid's pictures are uint8 and hold numbers up to 10, which
divided by 255 would all look alike to a network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from rllib_conspec.environments.observations import is_picture

STEPS = 500
SEED = 0  # the same environment always shows the same
BRIGHT = 128  # a byte this large is one of an ordinary picture, which has values up to 255
LARGE = 10.0  # up to here a vector is left as it is


def played(env: gym.Env | VectorEnv) -> Iterator[np.ndarray]:
    """Observations of up to `STEPS` random steps, of the first of a vector of environments."""
    many = isinstance(env, VectorEnv)
    env.action_space.seed(SEED)
    observation, _ = env.reset(seed=SEED)
    yield observation[0] if many else observation
    over = False
    for _ in range(STEPS):
        if over and not many:  # vectors reset by themselves
            observation, _ = env.reset()
            over = False
        else:
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = np.any(terminated) or np.any(truncated)
        yield observation[0] if many else observation


def observation_range(space: spaces.Box, seen: Iterable[np.ndarray]) -> float:
    """See `Facts.observation_range`. `seen` is used as far as needed, one step at least: what does
    not work should be met here and not on a worker.
    """
    whole = space.dtype.kind in "iub"
    picture = is_picture(space)
    declared = _declared(space) if picture else None
    largest = 0.0
    for step, observation in enumerate(seen):
        values = np.abs(observation[np.isfinite(observation)].astype(np.float64))
        largest = max(largest, float(values.max(initial=0.0)))
        bright = space.dtype == np.uint8 and largest >= BRIGHT
        if step > 0 and (declared or bright):
            return declared or 255.0
    if not picture:
        return _rounded_up(largest) if largest > LARGE else 1.0
    if largest == 0.0:
        return 255.0 if whole else 1.0
    return largest if whole else max(1.0, _rounded_up(largest))


def _declared(space: spaces.Box) -> float | None:
    """The bound of the space, if it says more than the type does."""
    bound = max(abs(float(space.low.min())), abs(float(space.high.max())))
    if space.dtype.kind == "b" or bound == 0.0:
        return None
    limits = np.finfo if space.dtype.kind == "f" else np.iinfo
    return bound if bound < limits(space.dtype).max else None


def _rounded_up(value: float) -> float:
    """To two digits: the largest of a few random episodes is no exact number."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)
