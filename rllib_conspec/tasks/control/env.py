"""Continuous control with delayed reward as one Gymnasium environment, for any robot."""

from __future__ import annotations

import gymnasium as gym
import mujoco
from gymnasium import spaces

from rllib_conspec.environments import find
from rllib_conspec.environments.wrappers import Flatten, TimeLimit
from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.control.delay import DelayedForward, X

STEPS = 250
# Units of x between two payments: the paper's. A trained HalfCheetah runs three times as far.
THRESHOLDS = {"Hopper-v5": 1.0, "Walker2d-v5": 1.0, "HalfCheetah-v5": 3.0}


class DelayedControlEnv(DelayedForward):
    """One robot; rewards are those of the robot's own environment, delayed.

    Args:
        robot: id of an environment that has `x_position` in its infos, such as `Hopper-v5`.
        threshold: units of x between two payments; by default the paper's, for its three robots.
        max_episode_steps: when an episode is cut off.
        render_mode: one of the robot's own.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 60}

    def __init__(
        self,
        robot: str = "Hopper-v5",
        threshold: float | None = None,
        max_episode_steps: int = STEPS,
        render_mode: str | None = None,
    ) -> None:
        env = made(robot, render_mode)
        self.max_episode_steps = max_episode_steps
        super().__init__(TimeLimit(env, max_episode_steps), threshold_of(robot, threshold))


def made(robot: str, render_mode: str | None = None) -> gym.Env:
    """The robot's own environment, without a time limit, with vectors as float32."""
    try:
        spec = find(robot)
    except OptionError as error:
        raise OptionError("robot", error.message) from error
    # MuJoCo would complain of HalfCheetah's own model, on the screen and into a file.
    mujoco.set_mju_user_warning(lambda message: None)
    try:  # no time limit of its own, and no checks at every step
        env = gym.make(
            spec, render_mode=render_mode, max_episode_steps=-1, disable_env_checker=True
        )
    finally:
        mujoco.set_mju_user_warning(None)
    env.reset(seed=0)
    *_, info = env.step(env.action_space.sample())
    if X not in info:
        raise OptionError(
            "robot", f'"{robot}" has no {X} in its infos, by which rewards are delayed.'
        )
    space = env.observation_space
    return Flatten(env) if isinstance(space, spaces.Box) and len(space.shape) == 1 else env


def threshold_of(robot: str, threshold: float | None) -> float:
    threshold = THRESHOLDS.get(robot) if threshold is None else threshold
    if threshold is None:
        raise OptionError("threshold", f"has to be set for {robot}: units of x between payments.")
    return threshold
