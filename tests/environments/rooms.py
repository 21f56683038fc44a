"""Small environments as users write them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Walk(gym.Env):
    """A random walk of two components, which ends by itself when it has gone far."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}
    action_space = spaces.Discrete(2)
    critical_events = ("turned",)

    def __init__(
        self, far: int = 1000, scale: float = 1.0, render_mode: str | None = None, names: Any = None
    ):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.far = far
        self.scale = scale
        self.render_mode = render_mode
        self.observation_names = names

    def _observe(self) -> np.ndarray:
        return (self.place * self.scale).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2)
        self.last = None
        return self._observe(), {}

    def step(self, action):
        turned = self.last is not None and action != self.last
        self.last = action
        self.place = self.place + (2 * action - 1) + 0.1 * self.np_random.normal(size=2)
        over = bool(np.abs(self.place).max() > self.far)
        return self._observe(), 0.0, over, False, {"turned": 1} if turned else {}

    def render(self):
        return np.full((4, 4, 3), 7, np.uint8)


class Shows(gym.Env):
    """Observations drawn from `sampled`, declared as `space`; episodes have no end."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space, sampled: spaces.Space | None = None):
        self.observation_space = space
        self.sampled = sampled if sampled is not None else space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sampled.seed(seed)
        return self.sampled.sample(), {}

    def step(self, action):
        return self.sampled.sample(), 0.0, False, False, {}


def showing(space: spaces.Space, sampled: spaces.Space | None = None):
    """`Shows` as RLlib takes it."""
    return lambda config: Shows(space, sampled)
