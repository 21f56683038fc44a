"""Small environments with pictures of their own."""

import os

import gymnasium as gym
import numpy as np


class Room(gym.Env):
    """The agent walks along a corridor. It sees where it is; a person sees the colour of the walls,
    which the seed chooses.
    """

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = gym.spaces.Box(-50.0, 50.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(3)
    observation_names = ("place", "wind", "time")
    max_episode_steps = 12

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.colour = self.np_random.integers(50, 255, 3, dtype=np.uint8)
        self.place, self.wind, self.time = 0.0, 0.0, 0
        return self.observe(), {}

    def step(self, action):
        self.place += float(np.sum(action))
        self.wind = self.blow()
        self.time += 1
        return self.observe(), 0.0, False, False, {}

    def blow(self) -> float:
        return float(self.np_random.normal())

    def observe(self):
        return np.array([self.place, self.wind, self.time], dtype=np.float32)

    def render(self):
        picture = np.zeros((20, 40, 3), dtype=np.uint8)
        picture[:] = self.colour
        picture[self.time] = 0  # a line for the time
        return picture


class Pushed(Room):
    """Moves by as much as it is pushed, in a range that is not the policy's."""

    action_space = gym.spaces.Box(0.0, 10.0, (1,), np.float32)


class Windy(Room):
    """The wind depends on no seed."""

    def blow(self) -> float:
        return int.from_bytes(os.urandom(2)) / 2**15


class Dark(Room):
    """Has no pictures."""

    metadata = {"render_modes": []}
    render = gym.Env.render

    def __init__(self):
        super().__init__()


class Blank(Dark):
    def render(self):
        return None


class Screenless(Room):
    def render(self):
        raise RuntimeError("no screen,\nno picture")
