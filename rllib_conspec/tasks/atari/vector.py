"""Atari games as the paper plays them, on ale-py's own vector environment.

Its defaults would make another task of it: rewards clipped, grey, four frames stacked, episodes
of up to 27 000 steps. Here an observation is one picture in colour and rewards are the game's
points. A policy may learn from their sign (`reward_scale: sign`); scores and the ranking of
episodes are of the points.
"""

from __future__ import annotations

import os
from typing import Any

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.atari.games import rom_id, title

SIDE = 84
FRAMESKIP = 4
STEPS = 600


class AtariColourVectorEnv(VectorEnv):
    """`num_envs` games of one kind, stepped together.

    Observations are uint8 [num_envs, 84, 84, 3]. A step is 4 frames with one action; an episode
    begins after up to 30 frames without any. A finished game starts anew on the next step, whose
    action is ignored (`AutoresetMode.NEXT_STEP`).

    An episode ends when the game is over, or when its time is: `terminated` in both cases. The
    paper tallies the score at that point, so that nothing is to be expected beyond it.

    Infos: `score` where an episode ends, the sum of its rewards.

    Args:
        num_envs: how many games.
        game: `Pong`, `AirRaid`, … .
        delayed: pay the whole score on the last step of an episode, and nothing before it.
        max_episode_steps: when an episode's time is over.
        render_mode: `"rgb_array"` (the observations) or None.
    """

    metadata = {
        "render_modes": ["rgb_array"],
        "render_fps": 60 // FRAMESKIP,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    critical_events = ()

    def __init__(
        self,
        num_envs: int = 1,
        game: str = "Pong",
        delayed: bool = False,
        max_episode_steps: int = STEPS,
        render_mode: str | None = None,
    ) -> None:
        if max_episode_steps < 1:
            raise OptionError("max_episode_steps", f"must be at least 1, not {max_episode_steps}.")
        self.num_envs = num_envs
        self.delayed = delayed
        self.max_episode_steps = max_episode_steps
        self.render_mode = render_mode
        rom = rom_id(game)
        self._games = AtariVectorEnv(
            rom,
            num_envs,
            grayscale=False,
            stack_num=1,
            img_height=SIDE,
            img_width=SIDE,
            frameskip=FRAMESKIP,
            reward_clipping=False,
            max_num_frames_per_episode=max_episode_steps * FRAMESKIP,
            # As many as all else in this process may use: workers share a machine.
            num_threads=int(os.environ.get("OMP_NUM_THREADS") or 1),
        )
        self.single_observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        self.single_action_space = self._games.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.plays = title(rom)
        self.version = f"ale-py {ale_py.__version__}"
        # By number, as far as the game uses them.
        self.action_names = [action.name for action in self._games.ale.get_action_set()]
        self._scores = np.zeros(num_envs)
        self._seen: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        observations, _ = self._games.reset(seed=seed)
        self._scores[:] = 0.0
        self._seen = observations[:, 0]
        return self._seen, {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        observations, points, lost, late, _ = self._games.step(np.asarray(actions))
        self._seen = observations[:, 0]
        over = lost | late
        self._scores += points
        rewards = np.where(over, self._scores, 0.0) if self.delayed else points.astype(float)
        infos: dict[str, Any] = {}
        if over.any():
            infos = {"score": self._scores.copy(), "_score": over}
            self._scores[over] = 0.0
        return self._seen, rewards, over, np.zeros_like(over), infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One picture per environment, or None without `render_mode`."""
        if self.render_mode is None or self._seen is None:
            return None
        return tuple(self._seen)
