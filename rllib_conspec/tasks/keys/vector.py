"""Multi-key-to-door for all environments of a worker at once: state and rules as arrays.

This is the only implementation of the rules; the single environment is a vector of one.
"""

from numbers import Integral
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy import count_nonzero  # several times faster than .any() on a short array

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks import noise
from rllib_conspec.tasks.keys import render
from rllib_conspec.tasks.keys.layout import (
    CELLS,
    MOVES,
    NOWHERE,
    SIDE,
    episode_steps,
    stages,
)
from rllib_conspec.tasks.keys.picture import AGENT, APPLE, stage_pictures

# With 8 apples, 40 % of the frames of 32 random 2-key episodes are different, as in the authors'
# game. Apples are the part of an episode that can be learned by heart, so this number matters.
NUM_APPLES = 8
MAX_APPLES = CELLS - 1

OBSERVATION_SPACE = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
ACTION_SPACE = gym.spaces.Discrete(len(MOVES))


class MultiKeyToDoorVectorEnv(VectorEnv):
    """``num_envs`` games stepped together.

    Observations are uint8 ``[num_envs, 5, 5, 3]``, actions up, down, left, right. A finished game
    starts anew on the next step, whose action is ignored (``AutoresetMode.NEXT_STEP``).

    Infos, only on the step they happen: ``key_taken`` and ``door_opened`` (the number of the key,
    of the key that opens the door), and ``is_success`` when an episode ends.

    Args:
        num_envs: how many games.
        keys: number of keys, 1 to 4.
        conjunctive: every key can be taken without the others, all are needed at the last door.
        num_apples: apples that lie in a waiting room at any time.
        reward: what leaving by the last door is worth.
        normalize_reward: pay 1 instead of ``reward``.
        render_mode: ``"rgb_array"`` or None.
    """

    metadata = {
        "render_modes": ["rgb_array"],
        "render_fps": 8,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    # Infos that mark steps worth finding; kept with stored episodes, so that reports can name them.
    critical_events = ("key_taken", "door_opened")

    def __init__(
        self,
        num_envs: int = 1,
        keys: int = 1,
        conjunctive: bool = False,
        num_apples: int = NUM_APPLES,
        reward: float = 10.0,
        normalize_reward: bool = True,
        render_mode: str | None = None,
    ):
        if num_envs < 1:
            raise OptionError("num_envs", f"must be at least 1, not {num_envs!r}")
        if not isinstance(num_apples, Integral) or not 0 <= num_apples <= MAX_APPLES:
            raise OptionError("num_apples", f"must be 0 to {MAX_APPLES}, not {num_apples!r}")
        if reward <= 0:
            raise OptionError("reward", f"must be above 0, not {reward!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise OptionError("render_mode", f'must be "rgb_array" or None, not {render_mode!r}')
        self.num_envs = num_envs
        self.keys = keys
        self.conjunctive = conjunctive
        self.num_apples = num_apples
        self.render_mode = render_mode
        self.single_observation_space = OBSERVATION_SPACE
        self.single_action_space = ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, num_envs)
        self.action_space = batch_space(ACTION_SPACE, num_envs)
        self.stages = stages(keys, conjunctive)
        self.max_episode_steps = episode_steps(self.stages)
        self._paid = 1.0 if normalize_reward else float(reward)
        self._make_tables()
        self._make_state()

    def _make_tables(self) -> None:
        """The layout as arrays, indexed by stage number or by step."""
        order = self.stages
        self._pictures = stage_pictures(order).reshape(-1, CELLS, 3)
        targets = [[[s.room.step(c, move) for move in MOVES] for c in range(CELLS)] for s in order]
        self._targets = np.array(targets).ravel()
        self._start = np.array([s.room.start for s in order])
        self._key_cell = np.array([s.room.key for s in order])
        self._door_cell = np.array([s.room.door for s in order])
        self._key_number = np.array([s.key for s in order])
        self._door_number = np.array([max(s.opened_by, default=0) for s in order])
        self._needed_bits = np.array([sum(1 << key for key in s.opened_by) for s in order])
        self._is_exit = np.array([s.exit for s in order])
        self._is_waiting = np.array([s.waiting for s in order])
        # Observation t (0..T) belongs to the stage of step t; the one after the last step still
        # shows the exit.
        stage_of_step = np.repeat(np.arange(len(order)), [s.steps for s in order])
        self._stage_at = np.append(stage_of_step, len(order) - 1)
        self._places = noise.places(self.max_episode_steps, CELLS)
        self._enters_at = np.diff(self._stage_at, prepend=-1) > 0

    def _make_state(self) -> None:
        n = self.num_envs
        self._nobody = np.zeros(n, bool)
        self._first_cell = np.arange(n) * CELLS  # of each environment, in the flattened batch
        self._was_reset = False
        self._seeds = np.zeros(n, np.uint64)
        self._episode = np.full(n, -1)
        self._words = np.zeros(n, np.uint64)
        self._over = np.zeros(n, bool)
        self._t = np.zeros(n, np.int64)
        self._stage = np.zeros(n, np.int64)
        self._cell = np.zeros(n, np.int64)
        self._held = np.zeros(n, np.int64)  # bit k: holds key k
        self._key = np.full(n, NOWHERE)  # cell of the key, until it is taken
        self._door = np.full(n, NOWHERE)  # cell of the door, until it is opened
        self._picture = np.zeros(n, np.int64)  # row of self._pictures
        self._apples = np.zeros((n, CELLS), bool)

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
                self._seeds[i] = noise.seed_word(seed[i])
                self._episode[i] = -1
        self._was_reset = True
        self._t[chosen] = 0
        self._over[chosen] = False
        self._enter(chosen)
        return self._observe(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Move every agent; ``actions`` is int ``[num_envs]``."""
        if not self._was_reset:
            raise gym.error.ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        if count_nonzero((actions < 0) | (actions >= len(MOVES))):
            raise ValueError(f"actions must be 0 to {len(MOVES) - 1}, not {actions.tolist()}")
        self._t = (self._t + 1) * ~self._over
        entering = self._enters_at.take(self._t)
        # The step that changes rooms does nothing else. So a key taken or a door opened is always
        # followed by a frame of its room: every critical step can be seen.
        target = self._targets.take((self._stage * CELLS + self._cell) * len(MOVES) + actions)
        takes, opens = self._move(np.where(entering, self._cell, target))
        if count_nonzero(entering):
            self._enter(entering.nonzero()[0])

        success = opens & self._is_exit.take(self._stage)
        # The time limit is a rule of the game, not a cut made for training: the value of what
        # would come after it is 0. Hence terminated, not truncated.
        self._over = success | (self._t == self.max_episode_steps)
        infos = self._infos(takes, opens, success)
        truncated = self._nobody.copy()
        return self._observe(), success * self._paid, self._over.copy(), truncated, infos

    def _move(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step onto ``target`` cells ``[n]`` if doors allow, with all that follows.

        Returns who took a key and who opened a door, bool ``[n]``. Most steps do neither, so the
        work for an event is done only when there is one.
        """
        opens = self._nobody
        at_door = target == self._door
        if count_nonzero(at_door):
            needed = self._needed_bits[self._stage]
            opens = at_door & ((self._held & needed) == needed)
            target = np.where(at_door & ~opens, self._cell, target)
            self._held &= ~(needed * opens)
            self._door[opens] = NOWHERE
            self._picture[opens] += 1
        self._cell = target
        takes = target == self._key
        if count_nonzero(takes):
            self._held |= takes * np.left_shift(1, self._key_number[self._stage])
            self._key[takes] = NOWHERE
            self._picture[takes] += 2
        eats = self._apples.take(self._first_cell + target)
        if count_nonzero(eats):
            self._regrow(eats.nonzero()[0])
        return takes, opens

    def _enter(self, who: np.ndarray) -> None:
        """Put environments ``who`` at the start of the stage that their step counter names."""
        stage = self._stage_at[self._t[who]]
        self._stage[who] = stage
        self._cell[who] = self._start[stage]
        self._key[who] = self._key_cell[stage]
        self._door[who] = self._door_cell[stage]
        self._picture[who] = stage * 4
        self._apples[who] = False
        begins = who[self._t[who] == 0]
        if begins.size:
            self._held[begins] = 0
            self._episode[begins] += 1
            self._words[begins] = noise.episode_words(self._seeds[begins], self._episode[begins])
        waits = who[self._is_waiting[stage]]
        if waits.size:
            luck = self._luck(waits)
            grown = luck.argsort(axis=1)[:, : self.num_apples]
            self._apples[waits[:, None], grown] = True

    def _regrow(self, who: np.ndarray) -> None:
        """The apple under the agent is eaten, another one grows elsewhere."""
        grown = self._luck(who).argmin(axis=1)
        self._apples[who, self._cell[who]] = False
        self._apples[who, grown] = True

    def _luck(self, who: np.ndarray) -> np.ndarray:
        """Random uint64 ``[len(who), 25]``, the largest number where no apple can grow."""
        luck = noise.draws(self._words[who], self._places[self._t[who]])
        luck[self._apples[who]] = noise.LARGEST
        luck[np.arange(who.size), self._cell[who]] = noise.LARGEST
        return luck

    def _observe(self) -> np.ndarray:
        pictures = self._pictures.take(self._picture, axis=0)
        pictures[self._apples] = APPLE
        pictures.reshape(-1, 3)[self._first_cell + self._cell] = AGENT
        return pictures.reshape(self.num_envs, SIDE, SIDE, 3)

    def _infos(self, takes: np.ndarray, opens: np.ndarray, success: np.ndarray) -> dict[str, Any]:
        infos = {}
        if count_nonzero(takes):
            infos["key_taken"] = self._key_number[self._stage] * takes
            infos["_key_taken"] = takes
        if count_nonzero(opens):
            infos["door_opened"] = self._door_number[self._stage] * opens
            infos["_door_opened"] = opens
        if count_nonzero(self._over):
            infos["is_success"] = success
            infos["_is_success"] = self._over.copy()
        return infos

    def view(self, index: int) -> render.View:
        """What a spectator of environment ``index`` may know, held keys included."""
        return render.View(
            stage=self.stages[self._stage[index]],
            step=int(self._t[index]),
            last_step=self.max_episode_steps,
            cell=int(self._cell[index]),
            held=tuple(k for k in range(1, self.keys + 1) if self._held[index] >> k & 1),
            key_lies=bool(self._key[index] != NOWHERE),
            door_open=bool(self._door[index] == NOWHERE),
            apples=tuple(np.flatnonzero(self._apples[index]).tolist()),
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One uint8 picture per environment, or None without ``render_mode``."""
        if self.render_mode is None:
            return None
        return tuple(render.draw(self.view(i)) for i in range(self.num_envs))
