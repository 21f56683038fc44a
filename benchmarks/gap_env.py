"""Seven levers, a corridor, a door: the right lever opens the door, `gap` steps later.

The agent stands on a ring of seven places with a lever each, in another order every episode, and
sees the lever before it. It may go left or right, or pull; pulling one ends the choice. The
observation that this step leads to says which one it was, and no later one does. Then comes a
corridor of `gap` steps in which actions do nothing, and at its end a door, where pulling pays 1 if
lever 0 was pulled.

A random policy pulls the right lever in 14 % of the episodes and opens the door in 8 %.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

LEVERS = 7
NOISE = 4
LEFT, RIGHT, PULL = range(3)
WAITING, CHOOSING, WALKING, AT_DOOR = range(4)
# Levers come into sight after 0 to 4 steps; then there are 10 steps to pull one. At the door, 2.
LATEST, CHOICE_STEPS, DOOR_STEPS = 4, 10, 2


class Gap(gym.Env):
    """Observations: what part of the episode it is, the lever before the agent, the lever that was
    pulled by this very step, and noise.
    """

    observation_space = gym.spaces.Box(0.0, 1.0, (4 + 2 * LEVERS + NOISE,), np.float32)
    observation_names = (
        *("waiting", "choosing", "walking", "at the door"),
        *(f"lever {n}" for n in range(LEVERS)),
        *(f"pulled {n}" for n in range(LEVERS)),
        *(f"noise {n}" for n in range(NOISE)),
    )
    action_space = gym.spaces.Discrete(3)
    critical_events = ("right_lever",)

    def __init__(self, gap: int = 100):
        self.gap = gap
        self.max_episode_steps = LATEST + CHOICE_STEPS + gap + DOOR_STEPS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.levers = self.np_random.permutation(LEVERS)
        self.place = 0
        self.pulled = None
        self._enter(WAITING, int(self.np_random.integers(LATEST + 1)))
        if self.left == 0:
            self._enter(CHOOSING, CHOICE_STEPS)
        return self._observe(None), {}

    def step(self, action):
        info, reward, over, pulls = {}, 0.0, False, None
        self.left -= 1
        if self.part == CHOOSING and action == PULL:
            pulls = self.pulled = int(self.levers[self.place])
            self.left = 0
            if pulls == 0:
                info["right_lever"] = 1
        elif self.part == CHOOSING:
            self.place = (self.place + (1 if action == RIGHT else -1)) % LEVERS
        elif self.part == AT_DOOR and action == PULL:
            over, reward = True, float(self.pulled == 0)
        if self.left == 0 and self.part == AT_DOOR:
            over = True
        elif self.left == 0:
            steps = {WAITING: CHOICE_STEPS, CHOOSING: self.gap, WALKING: DOOR_STEPS}[self.part]
            self._enter(self.part + 1, steps)
        return self._observe(pulls), reward, over, False, info

    def _enter(self, part: int, steps: int) -> None:
        self.part, self.left = part, steps

    def _observe(self, pulls: int | None) -> np.ndarray:
        observation = np.zeros(self.observation_space.shape, np.float32)
        observation[self.part] = 1.0
        if self.part == CHOOSING:
            observation[4 + self.levers[self.place]] = 1.0
        if pulls is not None:
            observation[4 + LEVERS + pulls] = 1.0
        observation[-NOISE:] = self.np_random.random(NOISE)
        return observation
