"""A Unity build as one Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import iterate

from rllib_conspec.unity.vector import UnityVectorEnv


class _OneAgent(UnityVectorEnv):
    _any_number_of_agents = True


class UnityEnv(gym.Env):
    """The first agent of a player; options, observations and infos as in ``UnityVectorEnv``.

    Other agents of the build stand still.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        file_name: str = "",
        num_agents: int | None = None,
        base_port: int = 5005,
        timeout: float = 30.0,
        no_graphics: bool = True,
        parameters: dict | None = None,
        engine: dict | None = None,
        additional_args: list | None = None,
        log_dir: str | None = None,
        behavior: str = "",
    ):
        self.game = _OneAgent(
            num_envs=1,
            file_name=file_name,
            num_agents=num_agents,
            base_port=base_port,
            timeout=timeout,
            no_graphics=no_graphics,
            parameters=parameters,
            engine=engine,
            additional_args=additional_args,
            log_dir=log_dir,
            behavior=behavior,
        )
        self.observation_space = self.game.single_observation_space
        self.action_space = self.game.single_action_space
        self.critical_events = self.game.critical_events
        self.max_episode_steps = self.game.max_episode_steps
        self._over = True

    @property
    def pid(self) -> int | None:
        """Process id of the player."""
        return self.game.pid

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
        self._over = bool(terminated[0] or truncated[0])
        info = {
            name: values.item() if isinstance(values, np.ndarray) else values[0]
            for name, values in infos.items()
            if not name.startswith("_")
        }
        ends = bool(terminated[0]), bool(truncated[0])
        return self._first(observations), float(rewards[0]), *ends, info

    def _first(self, observations: Any) -> Any:
        return next(iterate(self.game.observation_space, observations))

    def close(self) -> None:
        self.game.close()
