"""OrangeTree for all environments of a worker at once: Gymnasium's side of ``game.Games``.

The single environment is a vector of one.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy import count_nonzero  # several times faster than .any() on a short array

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.orangetree import render
from rllib_conspec.tasks.orangetree.backdrop import Backdrop
from rllib_conspec.tasks.orangetree.camera import Camera
from rllib_conspec.tasks.orangetree.game import Games, View
from rllib_conspec.tasks.orangetree.layout import ACTIONS
from rllib_conspec.tasks.orangetree.screen import SIZE

OBSERVATION_SPACE = gym.spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
ACTION_SPACE = gym.spaces.Discrete(len(ACTIONS))


class OrangeTreeVectorEnv(VectorEnv):
    """``num_envs`` games stepped together.

    Observations are uint8 ``[num_envs, 84, 84, 3]``, actions forward, back, turn left, turn right.
    A finished game starts anew on the next step, whose action is ignored
    (``AutoresetMode.NEXT_STEP``).

    Infos, only on the step they happen: ``flat_taken``, ``other_taken``, ``apple_taken`` and
    ``orange_picked`` (1), and ``is_success`` when an episode ends.

    Args:
        num_envs: how many games.
        variant: ``"train"``, ``"black"`` (black objects), ``"room"`` (pink walls, green floor) or
            ``"random"`` (objects, walls and floors in new colours every episode; see ``colours``).
        reward: what the orange is worth.
        normalize_reward: pay 1 instead of ``reward``.
        render_mode: ``"rgb_array"`` or None.
    """

    metadata = {
        "render_modes": ["rgb_array"],
        "render_fps": 8,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    # Infos that mark steps worth finding; kept with stored episodes, so that reports can name them.
    critical_events = ("flat_taken", "orange_picked")

    def __init__(
        self,
        num_envs: int = 1,
        variant: str = "train",
        reward: float = 10.0,
        normalize_reward: bool = True,
        render_mode: str | None = None,
    ):
        if num_envs < 1:
            raise OptionError("num_envs", f"must be at least 1, not {num_envs!r}")
        if reward <= 0:
            raise OptionError("reward", f"must be above 0, not {reward!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise OptionError("render_mode", f'must be "rgb_array" or None, not {render_mode!r}')
        self.num_envs = num_envs
        self.variant = variant
        self.render_mode = render_mode
        self.single_observation_space = OBSERVATION_SPACE
        self.single_action_space = ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, num_envs)
        self.action_space = batch_space(ACTION_SPACE, num_envs)
        self.games = Games(num_envs, variant)
        self.max_episode_steps = self.games.last_step
        self._camera = Camera()
        self._backdrops = [Backdrop(self.games.room(0))] * num_envs
        self._paid = 1.0 if normalize_reward else float(reward)
        self._was_reset = False
        self._over = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start new episodes, in all environments or where ``options["reset_mask"]`` is true.

        An integer seeds environment i with ``seed + i``. Without a seed the next episode of the
        running stream begins.
        """
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seed = [int(seed) + i for i in range(self.num_envs)]
        elif seed is None and not self._was_reset:
            seed = self.np_random.integers(np.iinfo(np.int64).max, size=self.num_envs).tolist()
        elif seed is None:
            seed = [None] * self.num_envs
        elif len(seed) != self.num_envs:
            raise ValueError(f"seed must hold {self.num_envs} seeds, not {len(seed)}")
        mask = (options or {}).get("reset_mask")
        chosen = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        for i in chosen:
            if seed[i] is not None:
                self.games.seed(i, seed[i])
        self._was_reset = True
        self._over[chosen] = False
        self.games.restart(chosen)
        return self._observe(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Move every agent; ``actions`` is int ``[num_envs]``."""
        if not self._was_reset:
            raise gym.error.ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        if count_nonzero((actions < 0) | (actions >= len(ACTIONS))):
            raise ValueError(f"actions must be 0 to {len(ACTIONS) - 1}, not {actions.tolist()}")
        events = self.games.advance(actions, self._over)
        success = events["orange_picked"]
        # The time limit is a rule of the game, not a cut made for training: the value of what
        # would come after it is 0. Hence terminated, not truncated.
        self._over = success | (self.games.t == self.max_episode_steps)
        infos = {}
        for name, happened in events.items():
            if count_nonzero(happened):
                infos[name] = happened.astype(np.int64)
                infos[f"_{name}"] = happened
        if count_nonzero(self._over):
            infos["is_success"] = success.copy()
            infos["_is_success"] = self._over.copy()
        truncated = np.zeros(self.num_envs, bool)
        return self._observe(), success * self._paid, self._over.copy(), truncated, infos

    def _observe(self) -> np.ndarray:
        games = self.games
        pictures = np.empty((self.num_envs, SIZE, SIZE, 3), np.uint8)
        for index, picture in enumerate(pictures):
            self._camera.take(
                self._backdrop(index),
                games.xy[index],
                int(games.heading[index]),
                bool(games.raised[index]),
                games.things(index),
                picture,
            )
        return pictures

    def _backdrop(self, index: int) -> Backdrop:
        """Of the room where environment ``index`` is; made when its agent enters it."""
        room = self.games.room(index)
        if self._backdrops[index].room is not room:
            self._backdrops[index] = Backdrop(room)
        return self._backdrops[index]

    def view(self, index: int) -> View:
        """What a spectator of environment ``index`` may know, what is carried included."""
        return self.games.view(index)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One uint8 picture per environment, or None without ``render_mode``."""
        if self.render_mode is None:
            return None
        return tuple(
            render.draw(self.view(i), picture) for i, picture in enumerate(self._observe())
        )
