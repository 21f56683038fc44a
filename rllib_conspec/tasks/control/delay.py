"""The delay of continuous control: what running forward earns is paid when a threshold is passed.

Thresholds lie at every `threshold` units of x from where an episode began. The step that passes the
next one pays all of the forward reward held back since the one before; a step that passes several
pays once, and going back and passing one again pays nothing.

The paper says nothing of what is still held back when an episode ends. Here its last step pays that
too: the delay moves reward in time and changes no sum, so that returns are those of the undelayed
task. Other parts of the reward (being healthy, the cost of control) are never held back.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rllib_conspec.errors import OptionError

X, FORWARD = "x_position", "reward_forward"  # names of infos


class ForwardDelay:
    """The rule, for E environments at once; all arrays are [E]."""

    def __init__(self, num_envs: int, threshold: float) -> None:
        if not threshold > 0:
            raise OptionError("threshold", f"must be more than 0 units of x, not {threshold}.")
        self._threshold = threshold
        self._start = np.zeros(num_envs)
        self._next = np.zeros(num_envs)
        self._held = np.zeros(num_envs)

    def begin(self, which: Any, x: Any) -> None:
        """Episodes of the environments `which` (an index or mask) begin at x."""
        self._start[which] = x
        self._next[which] = self._start[which] + self._threshold
        self._held[which] = 0.0

    def pay(self, x: np.ndarray, forward: np.ndarray, over: np.ndarray) -> np.ndarray:
        """What is paid of the forward reward on a step that led to x, earned `forward`, and was the
        last of its episode where `over` says so.
        """
        self._held += forward
        passed = x >= self._next
        due = passed | over
        paid = np.where(due, self._held, 0.0)
        self._held[due] = 0.0
        thresholds = np.floor((x - self._start) / self._threshold) + 1
        self._next = np.where(passed, self._start + thresholds * self._threshold, self._next)
        # Rounding must not leave a threshold that was passed as the next one.
        self._next = np.where(self._next <= x, self._next + self._threshold, self._next)
        return paid


class DelayedForward(gym.Wrapper):
    """Delays the forward reward of any environment whose infos have `x_position`.

    Held back is `reward_forward` of the infos; where an environment does not tell that part, the
    whole reward. The environment must keep its time limit itself: a limit outside of this wrapper
    would cut off what is still held back.
    """

    def __init__(self, env: gym.Env, threshold: float) -> None:
        super().__init__(env)
        self._delay = ForwardDelay(1, threshold)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        self._delay.begin(0, info.get(X, 0.0))  # MuJoCo's robots begin at 0, give or take little
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if X not in info:
            raise OptionError("env", f"has no {X} in its infos, by which rewards are delayed.")
        forward = info.get(FORWARD, reward)
        over = np.array([terminated or truncated])
        paid = self._delay.pay(np.array([info[X]]), np.array([forward]), over)
        return observation, float(reward - forward + paid[0]), terminated, truncated, info
