"""One Gymnasium environment out of a vector environment of size 1: rules are written once."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import iterate


class SingleEnv(gym.Env):
    """Plays ``game``, one of our vector environments with ``num_envs=1``."""

    def __init__(self, game: VectorEnv):
        self.game = game
        self.observation_space = game.single_observation_space
        self.action_space = game.single_action_space
        self.render_mode = game.render_mode
        self.critical_events = game.critical_events
        self.max_episode_steps = game.max_episode_steps
        for name in ("plays", "version", "action_names"):  # what only some games say of themselves
            if hasattr(game, name):
                setattr(self, name, getattr(game, name))
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observations, _ = self.game.reset(seed=seed)
        self._over = False
        return self._first(observations), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        # The vector would start the next episode by itself; a single environment must not.
        if self._over:
            raise gym.error.ResetNeeded("call reset() before step()")
        if isinstance(action, dict):
            actions: Any = {name: np.asarray(part)[None] for name, part in action.items()}
        else:
            actions = np.asarray(action)[None]
        observations, rewards, terminated, truncated, infos = self.game.step(actions)
        ends = bool(terminated[0]), bool(truncated[0])
        self._over = any(ends)
        # Names with an underscore are masks, which say whose the values are.
        info = {name: infos[name].item() for name in infos if not name.startswith("_")}
        return self._first(observations), float(rewards[0]), *ends, info

    def _first(self, observations: Any) -> Any:
        return next(iterate(self.game.observation_space, observations))

    def render(self) -> np.ndarray | None:
        frames = self.game.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        self.game.close()
