"""OrangeTree as one Gymnasium environment."""

from typing import Any

import gymnasium as gym
import numpy as np

from rllib_conspec.tasks.orangetree.vector import (
    ACTION_SPACE,
    OBSERVATION_SPACE,
    OrangeTreeVectorEnv,
)


class OrangeTreeEnv(gym.Env):
    """One game; options, observations and infos as in ``OrangeTreeVectorEnv``.

    With seed s it plays exactly what environment 0 of a vector with seed s plays.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(
        self,
        variant: str = "train",
        reward: float = 10.0,
        normalize_reward: bool = True,
        render_mode: str | None = None,
    ):
        self.game = OrangeTreeVectorEnv(
            num_envs=1,
            variant=variant,
            reward=reward,
            normalize_reward=normalize_reward,
            render_mode=render_mode,
        )
        self.observation_space = OBSERVATION_SPACE
        self.action_space = ACTION_SPACE
        self.render_mode = render_mode
        self.max_episode_steps = self.game.max_episode_steps
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        observations, _ = self.game.reset(seed=seed)
        self._over = False
        return observations[0], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        # The vector would start the next episode by itself; a single environment must not.
        if self._over:
            raise gym.error.ResetNeeded("call reset() before step()")
        observations, rewards, terminated, _, infos = self.game.step(np.array([action]))
        self._over = bool(terminated[0])
        info = {name: infos[name].item() for name in infos if not name.startswith("_")}
        return observations[0], float(rewards[0]), self._over, False, info

    def render(self) -> np.ndarray | None:
        frames = self.game.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        self.game.close()
