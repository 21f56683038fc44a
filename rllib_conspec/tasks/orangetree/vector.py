"""OrangeTree for all environments of a worker at once: state and rules as arrays.

This is the only implementation of the rules; the single environment is a vector of one.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy import count_nonzero  # several times faster than .any() on a short array

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.keys import noise
from rllib_conspec.tasks.orangetree import placement, render, scene
from rllib_conspec.tasks.orangetree.camera import SIZE, Backdrop, Camera, Thing
from rllib_conspec.tasks.orangetree.layout import (
    ACTIONS,
    AGENT_RADIUS,
    APPLE_TOUCH,
    BLOCK,
    FORWARDS,
    HELD_AHEAD,
    HELD_UP,
    NUM_APPLES,
    NUM_HEADINGS,
    OBJECT_ROOM,
    STAND,
    STEP,
    TOUCH,
    TREE_BLOCK,
    TREE_ROOM,
    WAITING_ROOM,
    episode_steps,
    object_colours,
    stages,
)

NOTHING = -1
OBSERVATION_SPACE = gym.spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
ACTION_SPACE = gym.spaces.Discrete(len(ACTIONS))
# What an action does: steps ahead, turns to the left.
_AHEAD = np.array([STEP, -STEP, 0.0, 0.0])
_TURN = np.array([0, 0, 1, -1])


class OrangeTreeVectorEnv(VectorEnv):
    """``num_envs`` games stepped together.

    Observations are uint8 ``[num_envs, 84, 84, 3]``, actions forward, back, turn left, turn right.
    A finished game starts anew on the next step, whose action is ignored
    (``AutoresetMode.NEXT_STEP``).

    Infos, only on the step they happen: ``flat_taken``, ``other_taken``, ``apple_taken`` and
    ``orange_picked`` (1), and ``is_success`` when an episode ends.

    Args:
        num_envs: how many games.
        variant: ``"train"``, ``"black"`` (black objects) or ``"room"`` (pink walls, green floor).
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
        self.stages = stages(variant)
        self.max_episode_steps = episode_steps(self.stages)
        self._paid = 1.0 if normalize_reward else float(reward)
        self._make_tables()
        self._make_state()

    def _make_tables(self) -> None:
        order = self.stages
        self._camera = Camera()
        self._backdrops = [Backdrop(stage.room) for stage in order]
        self._colours = [tuple(colour) for colour in object_colours(self.variant).tolist()]
        self._bounds = np.array([stage.room.half for stage in order]) - AGENT_RADIUS
        self._start = np.array([stage.room.start for stage in order])
        # Observation t (0..T) belongs to the stage of step t; the one after the last step still
        # shows the tree.
        stage_of_step = np.repeat(np.arange(len(order)), [stage.steps for stage in order])
        self._stage_at = np.append(stage_of_step, len(order) - 1)
        self._enters_at = np.diff(self._stage_at, prepend=-1) > 0
        self._places = noise.places(self.max_episode_steps, placement.DRAWS)

    def _make_state(self) -> None:
        n = self.num_envs
        self._nobody = np.zeros(n, bool)
        self._everyone = np.arange(n)
        self._was_reset = False
        self._seeds = np.zeros(n, np.uint64)
        self._episode = np.full(n, -1)
        self._words = np.zeros(n, np.uint64)
        self._over = np.zeros(n, bool)
        self._t = np.zeros(n, np.int64)
        self._stage = np.zeros(n, np.int64)
        self._xy = np.zeros((n, 2))
        self._heading = np.zeros(n, np.int64)
        self._raised = np.zeros(n, bool)  # stands on a flat object
        # The flat object first, then the other one.
        self._kind = np.zeros((n, 2), np.int64)
        self._colour = np.zeros((n, 2), np.int64)
        self._object_xy = np.zeros((n, 2, 2))
        self._object_heading = np.zeros((n, 2), np.int64)
        self._lies = np.zeros((n, 2), bool)  # in the room where the agent is
        self._taken = np.full(n, NOTHING)  # 0 the flat object, 1 the other one
        self._takes = np.zeros(n, bool)  # on this very step
        self._tree_xy = np.zeros((n, 2))
        self._orange_xy = np.zeros((n, 2))  # above where the object lies
        self._orange_hangs = np.zeros(n, bool)
        self._apple_xy = np.zeros((n, NUM_APPLES, 2))

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
        chosen = self._everyone if mask is None else np.flatnonzero(mask)
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
        events = self._advance(actions)
        success = events["orange_picked"]
        # The time limit is a rule of the game, not a cut made for training: the value of what
        # would come after it is 0. Hence terminated, not truncated.
        self._over = success | (self._t == self.max_episode_steps)
        infos = {}
        for name, happened in events.items():
            if count_nonzero(happened):
                infos[name] = happened.astype(np.int64)
                infos[f"_{name}"] = happened
        if count_nonzero(self._over):
            infos["is_success"] = success
            infos["_is_success"] = self._over.copy()
        truncated = self._nobody.copy()
        return self._observe(), success * self._paid, self._over.copy(), truncated, infos

    def _advance(self, actions: np.ndarray) -> dict[str, np.ndarray]:
        """The rules without the picture. Returns who did what, bool ``[n]`` by name of the info."""
        if not self._was_reset:
            raise gym.error.ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        if count_nonzero((actions < 0) | (actions >= len(ACTIONS))):
            raise ValueError(f"actions must be 0 to {len(ACTIONS) - 1}, not {actions.tolist()}")
        self._t = (self._t + 1) * ~self._over
        entering = self._enters_at.take(self._t)
        # The step that changes rooms does nothing else. So an object taken is always followed by a
        # frame of its room: every critical step can be seen.
        moving = ~entering
        self._heading = (self._heading + _TURN[actions] * moving) % NUM_HEADINGS
        self._walk(_AHEAD[actions] * moving)
        taking = moving & (self._stage == OBJECT_ROOM) & (self._taken == NOTHING)
        takes = self._take(taking) if count_nonzero(taking) else self._nobody
        self._takes = takes.copy()
        waiting = moving & (self._stage == WAITING_ROOM)
        eats = self._eat(waiting) if count_nonzero(waiting) else self._nobody
        picking = moving & (self._stage == TREE_ROOM) & (self._taken == 0)
        picks = self._pick(picking) if count_nonzero(picking) else self._nobody
        events = {
            "flat_taken": takes & (self._taken == 0),
            "other_taken": takes & (self._taken == 1),
            "apple_taken": eats,
            "orange_picked": picks,
        }
        if count_nonzero(entering):
            self._enter(entering.nonzero()[0])
        return events

    def _walk(self, ahead: np.ndarray) -> None:
        """Go ``ahead`` metres ``[n]`` along the heading, as far as walls and things allow."""
        bounds = self._bounds[self._stage]
        target = self._xy + ahead[:, None] * FORWARDS[self._heading]
        target = np.minimum(np.maximum(target, -bounds), bounds)
        # An object is in the way if it can be neither taken nor stood on.
        solid = self._lies & ((self._stage == OBJECT_ROOM) & (self._taken != NOTHING))[:, None]
        solid[:, 1] |= self._lies[:, 1] & (self._stage == TREE_ROOM)
        trunk = self._stage == TREE_ROOM
        blocked = trunk & self._runs_into(target, self._tree_xy, TREE_BLOCK)
        for which in (0, 1):
            at = self._object_xy[:, which]
            blocked |= solid[:, which] & self._runs_into(target, at, BLOCK)
        self._xy = np.where(blocked[:, None], self._xy, target)

    def _runs_into(self, target: np.ndarray, thing: np.ndarray, radius: float) -> np.ndarray:
        """Who would come too near to a thing, bool ``[n]``; going away is always allowed."""
        after = _squared(target - thing)
        return (after < radius * radius) & (after < _squared(self._xy - thing))

    def _take(self, who: np.ndarray) -> np.ndarray:
        """The nearer object that is touched is taken; the other one is then out of reach."""
        distance = _squared(self._object_xy - self._xy[:, None])
        nearer = distance.argmin(axis=1)
        takes = who & (distance.min(axis=1) < TOUCH * TOUCH)
        self._taken = np.where(takes, nearer, self._taken)
        self._lies[takes, nearer[takes]] = False
        return takes

    def _eat(self, who: np.ndarray) -> np.ndarray:
        """An apple that is touched is gone, another one grows elsewhere."""
        touched = _squared(self._apple_xy - self._xy[:, None]) < APPLE_TOUCH * APPLE_TOUCH
        touched &= who[:, None]
        eats = touched.any(axis=1)
        if count_nonzero(eats):
            some = eats.nonzero()[0]
            half = self.stages[WAITING_ROOM].room.half
            u = self._luck(some)[:, : 2 * NUM_APPLES].reshape(-1, NUM_APPLES, 2)
            grown = placement.apples(u, half)
            self._apple_xy[some] = np.where(touched[some, :, None], grown, self._apple_xy[some])
        return eats

    def _pick(self, who: np.ndarray) -> np.ndarray:
        """Standing on the flat object is high enough for the orange."""
        picks = who & (_squared(self._object_xy[:, 0] - self._xy) < STAND * STAND)
        self._raised = picks.copy()
        self._orange_hangs &= ~picks
        return picks

    def _luck(self, who: np.ndarray) -> np.ndarray:
        """Numbers in [0, 1) for this step of environments ``who``."""
        return placement.uniform(self._words[who], self._places[self._t[who]])

    def _enter(self, who: np.ndarray) -> None:
        """Put environments ``who`` at the start of the stage that their step counter names."""
        stage = self._stage_at[self._t[who]]
        self._stage[who] = stage
        self._xy[who] = self._start[stage]
        self._raised[who] = False
        self._takes[who] = False
        self._lies[who] = False
        begins = who[stage == OBJECT_ROOM]
        if begins.size:
            self._begin(begins)
        self._heading[who] = 0
        u = self._luck(who)
        waits = stage == WAITING_ROOM
        if count_nonzero(waits):
            half = self.stages[WAITING_ROOM].room.half
            free = u[waits, : 2 * NUM_APPLES].reshape(-1, NUM_APPLES, 2)
            self._apple_xy[who[waits]] = placement.apples(free, half)
        arrives = stage == TREE_ROOM
        if count_nonzero(arrives):
            self._plant(who[arrives], u[arrives])

    def _begin(self, who: np.ndarray) -> None:
        """Draw the objects of a new episode."""
        self._episode[who] += 1
        self._words[who] = noise.episode_words(self._seeds[who], self._episode[who])
        drawn = placement.objects(self._luck(who))
        self._kind[who] = drawn.kind
        self._colour[who] = drawn.colour
        self._object_xy[who] = drawn.xy
        self._object_heading[who] = drawn.heading
        self._lies[who] = True
        self._taken[who] = NOTHING

    def _plant(self, who: np.ndarray, u: np.ndarray) -> None:
        """The tree, and under it what was taken."""
        self._tree_xy[who], place, heading = placement.tree(u)
        self._orange_xy[who] = place
        self._orange_hangs[who] = True
        carried = self._taken[who] != NOTHING
        who, which = who[carried], self._taken[who[carried]]
        self._object_xy[who, which] = place[carried]
        self._object_heading[who, which] = heading[carried]
        self._lies[who, which] = True

    def things(self, index: int) -> list[Thing]:
        """What stands in the room of environment ``index``."""
        found = [
            Thing(
                int(self._kind[index, which]),
                *self._object_xy[index, which].tolist(),
                int(self._object_heading[index, which]),
                self._colours[self._colour[index, which]],
            )
            for which in (0, 1)
            if self._lies[index, which]
        ]
        if self._takes[index]:
            found.append(self._held(index))
        if self._stage[index] == WAITING_ROOM:
            for number, (x, y) in enumerate(self._apple_xy[index].tolist()):
                found.append(Thing(scene.FIRST_APPLE + number, x, y))
        elif self._stage[index] == TREE_ROOM:
            found.append(Thing(scene.TREE, *self._tree_xy[index].tolist()))
            if self._orange_hangs[index]:
                found.append(Thing(scene.ORANGE_TO_PICK, *self._orange_xy[index].tolist()))
        return found

    def _held(self, index: int) -> Thing:
        """An object is held up before the eye on the step it is taken, then it is put away.

        So the frame of the critical step shows what happened, and later ones do not.
        """
        which = self._taken[index]
        heading = self._heading[index]
        return Thing(
            int(self._kind[index, which]),
            *(self._xy[index] + HELD_AHEAD * FORWARDS[heading]).tolist(),
            int(self._object_heading[index, which]),
            self._colours[self._colour[index, which]],
            HELD_UP,
        )

    def _observe(self) -> np.ndarray:
        pictures = np.empty((self.num_envs, SIZE, SIZE, 3), np.uint8)
        states = zip(
            self._stage.tolist(), self._heading.tolist(), self._raised.tolist(), strict=True
        )
        for index, (stage, heading, raised) in enumerate(states):
            self._camera.take(
                self._backdrops[stage],
                self._xy[index],
                heading,
                raised,
                self.things(index),
                pictures[index],
            )
        return pictures

    def view(self, index: int) -> render.View:
        """What a spectator of environment ``index`` may know, what is carried included."""
        taken = int(self._taken[index])
        return render.View(
            stage=self.stages[self._stage[index]],
            step=int(self._t[index]),
            last_step=self.max_episode_steps,
            xy=tuple(self._xy[index].tolist()),
            heading=int(self._heading[index]),
            carried=None if taken == NOTHING else int(self._kind[index, taken]),
            things=tuple(self.things(index)),
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One uint8 picture per environment, or None without ``render_mode``."""
        if self.render_mode is None:
            return None
        return tuple(
            render.draw(self.view(i), picture) for i, picture in enumerate(self._observe())
        )


def _squared(difference: np.ndarray) -> np.ndarray:
    """Squared lengths of ``[..., 2]``."""
    return difference[..., 0] ** 2 + difference[..., 1] ** 2
