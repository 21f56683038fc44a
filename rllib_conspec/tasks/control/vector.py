"""Continuous control with delayed reward, many robots at once.

For the paper's three robots MuJoCo is stepped directly, from one loop over all of them: what
Gymnasium's environments compute in Python for each robot and step (observation, reward, infos) is
computed for all at once. The rules, the model and the first state of an episode are Gymnasium's: a
test compares the two step by step. Any other robot is stepped by Gymnasium's own vector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from rllib_conspec.environments.wrappers import SeededResets
from rllib_conspec.tasks.control.delay import ForwardDelay, X
from rllib_conspec.tasks.control.env import STEPS, DelayedControlEnv, made, threshold_of


def make_vector(
    num_envs: int = 1,
    robot: str = "Hopper-v5",
    threshold: float | None = None,
    max_episode_steps: int = STEPS,
) -> VectorEnv:
    """`num_envs` of `DelayedControlEnv`, with the same arguments."""
    if robot in HEALTHY:
        return PlanarRobots(num_envs, robot, threshold, max_episode_steps)
    one = partial(_seeded, robot, threshold, max_episode_steps)
    env = SyncVectorEnv([one] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)
    env.max_episode_steps = max_episode_steps
    return env


def _seeded(*arguments: Any) -> SeededResets:
    return SeededResets(DelayedControlEnv(*arguments))


class PlanarRobots(VectorEnv):
    """Hopper, Walker2d or HalfCheetah of Gymnasium, `num_envs` of them.

    Observations are float32 [num_envs, n], without x. Infos: `reset_seed` where an episode begins,
    with which `DelayedControlEnv` plays it again; `x_position` where one ends.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self, num_envs: int, robot: str, threshold: float | None, max_episode_steps: int
    ) -> None:
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.render_mode = None
        env = made(robot)
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._delay = ForwardDelay(num_envs, threshold_of(robot, threshold))
        self._rules = _Rules(env.unwrapped, HEALTHY[robot])
        self._template: MujocoEnv = env.unwrapped  # its resets are everybody's
        self._model = self._template.model
        self._data = [mujoco.MjData(self._model) for _ in range(num_envs)]
        # Views into MuJoCo's memory: looking them up costs as much as using them.
        self._ctrl = [d.ctrl for d in self._data]
        self._qpos, self._qvel = [d.qpos for d in self._data], [d.qvel for d in self._data]
        self._seeds = [np.random.default_rng() for _ in range(num_envs)]
        self._over = np.ones(num_envs, dtype=bool)
        self._time = np.zeros(num_envs, dtype=np.int64)
        self._x = np.zeros(num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if seed is not None:
            self._seeds = [np.random.default_rng(seed + i) for i in range(self.num_envs)]
        everyone = np.ones(self.num_envs, dtype=bool)
        infos = self._begin(everyone)
        qpos, qvel = np.stack(self._qpos), np.stack(self._qvel)
        return self._rules.observations(qpos, qvel), infos

    def _begin(self, which: np.ndarray) -> dict[str, Any]:
        """Start new episodes in the environments of the mask `which`."""
        seeds = np.zeros(self.num_envs, dtype=np.int64)
        for i in np.flatnonzero(which):
            seeds[i] = self._seeds[i].integers(2**31)
            self._template.reset(seed=int(seeds[i]))
            mujoco.mj_copyData(self._data[i], self._model, self._template.data)
            self._x[i] = self._qpos[i][0]
        self._delay.begin(which, self._x[which])
        self._time[which] = 0
        self._over = self._over & ~which
        return {"reset_seed": seeds, "_reset_seed": which.copy()}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        fresh = self._over
        infos = self._begin(fresh) if fresh.any() else {}
        step, model, skip = mujoco.mj_step, self._model, self._template.frame_skip
        for i, data in enumerate(self._data):
            if not fresh[i]:
                self._ctrl[i][:] = actions[i]
                step(model, data, skip)
        qpos, qvel = np.stack(self._qpos), np.stack(self._qvel)
        forward, other, fallen = self._rules.judge(self._x, qpos, qvel, actions)
        self._x, self._time = qpos[:, 0], self._time + ~fresh
        terminated = fallen & ~fresh
        truncated = (self._time >= self.max_episode_steps) & ~terminated
        self._over = terminated | truncated
        rewards = other + self._delay.pay(self._x, np.where(fresh, 0.0, forward), self._over)
        rewards[fresh] = 0.0
        if self._over.any():
            infos |= {X: self._x.copy(), f"_{X}": self._over.copy()}
        return self._rules.observations(qpos, qvel), rewards, terminated, truncated, infos


class _Rules:
    """What Gymnasium's environment of a robot says, for all robots at once."""

    def __init__(self, env: MujocoEnv, healthy: Callable[..., np.ndarray] | None) -> None:
        self._env, self._healthy = env, healthy
        # Hopper and Walker2d show velocities of at most 10, HalfCheetah shows them as they are.
        self._fastest = np.inf if healthy is None else 10.0

    def observations(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        shown = np.clip(qvel, -self._fastest, self._fastest)
        return np.concatenate([qpos[:, 1:], shown], axis=1, dtype=np.float32)

    def judge(
        self, before: np.ndarray, qpos: np.ndarray, qvel: np.ndarray, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forward reward, all other reward, and who has fallen; each [E]. `before` is x."""
        env = self._env
        forward = env._forward_reward_weight * (qpos[:, 0] - before) / env.dt
        cost = env._ctrl_cost_weight * np.square(actions).sum(axis=1)
        if self._healthy is None:
            return forward, -cost, np.zeros(len(qpos), dtype=bool)
        healthy = self._healthy(env, qpos, qvel)
        return forward, healthy * env._healthy_reward - cost, ~healthy


def _upright(env: MujocoEnv, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    (low, high), (left, right) = env._healthy_z_range, env._healthy_angle_range
    z, angle = qpos[:, 1], qpos[:, 2]
    return (low < z) & (z < high) & (left < angle) & (angle < right)


def _upright_and_calm(env: MujocoEnv, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    low, high = env._healthy_state_range
    state = np.concatenate([qpos[:, 2:], qvel], axis=1)
    return _upright(env, qpos, qvel) & ((low < state) & (state < high)).all(axis=1)


# Robots that are stepped directly, and when they are healthy; None: always.
HEALTHY = {
    "Hopper-v5": _upright_and_calm,
    "Walker2d-v5": _upright,
    "HalfCheetah-v5": None,
}
