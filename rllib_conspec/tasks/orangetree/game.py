"""The rules of OrangeTree, for many games at once: state as arrays, no pictures.

Every array has one row per game. A row's future depends on its seed, its episode and the actions in
that row, never on its neighbours.
"""

from dataclasses import dataclass

import numpy as np
from numpy import count_nonzero  # several times faster than .any() on a short array

from rllib_conspec.tasks import noise
from rllib_conspec.tasks.orangetree import colours, placement, scene
from rllib_conspec.tasks.orangetree.layout import (
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
    Room,
    Stage,
    episode_steps,
    object_colours,
    stages,
)
from rllib_conspec.tasks.orangetree.scene import Thing

NOTHING = -1
# What an action does: metres ahead, turns to the left.
_AHEAD = np.array([STEP, -STEP, 0.0, 0.0])
_TURN = np.array([0, 0, 1, -1])


@dataclass(frozen=True)
class View:
    """The full state of one game; ``carried`` is the kind of what was taken, or None."""

    stage: Stage
    step: int
    last_step: int
    xy: tuple[float, float]
    heading: int
    raised: bool
    carried: int | None
    things: tuple[Thing, ...]


class Games:
    """``count`` games. ``t`` counts the steps of the running episodes."""

    def __init__(self, count: int, variant: str = "train"):
        self.count = count
        self.stages = order = stages(variant)
        self.last_step = episode_steps(order)
        self._colours = [tuple(colour) for colour in object_colours(variant).tolist()]
        self._repaints = variant == "random"
        self._bounds = np.array([stage.room.half for stage in order]) - AGENT_RADIUS
        self._start = np.array([stage.room.start for stage in order])
        # Observation t (0..T) belongs to the stage of step t; the one after the last step still
        # shows the tree.
        stage_of_step = np.repeat(np.arange(len(order)), [stage.steps for stage in order])
        self._stage_at = np.append(stage_of_step, len(order) - 1)
        self._enters_at = np.diff(self._stage_at, prepend=-1) > 0
        self._places = noise.places(self.last_step, placement.DRAWS)
        self._make_state()

    def _make_state(self) -> None:
        n = self.count
        self._nobody = np.zeros(n, bool)
        self._seeds = np.zeros(n, np.uint64)
        self._episode = np.full(n, -1)
        self._words = np.zeros(n, np.uint64)
        self.t = np.zeros(n, np.int64)
        self.stage = np.zeros(n, np.int64)
        self._painted = [self.stages] * n  # the stages as they look in this episode
        self.xy = np.zeros((n, 2))
        self.heading = np.zeros(n, np.int64)
        self.raised = np.zeros(n, bool)  # stands on a flat object
        # The flat object first, then the other one.
        self._kind = np.zeros((n, 2), np.int64)
        self._colour = [(self._colours[0],) * 2] * n
        self._object_xy = np.zeros((n, 2, 2))
        self._object_heading = np.zeros((n, 2), np.int64)
        self._lies = np.zeros((n, 2), bool)  # in the room where the agent is
        self._taken = np.full(n, NOTHING)  # 0 the flat object, 1 the other one
        self._takes = np.zeros(n, bool)  # on this very step
        self._tree_xy = np.zeros((n, 2))
        self._orange_xy = np.zeros((n, 2))  # above where the object lies
        self._orange_hangs = np.zeros(n, bool)
        self._apple_xy = np.zeros((n, NUM_APPLES, 2))

    def seed(self, index: int, seed: int) -> None:
        """Let a game's next episode be the first one of ``seed``."""
        self._seeds[index] = noise.seed_word(seed)
        self._episode[index] = -1

    def restart(self, who: np.ndarray) -> None:
        """Begin the next episode of games ``who``, int ``[m]``."""
        self.t[who] = 0
        self._enter(who)

    def advance(self, actions: np.ndarray, restarting: np.ndarray) -> dict[str, np.ndarray]:
        """One step; where ``restarting`` the next episode begins and the action is ignored.

        Returns who did what, bool ``[n]`` by name of the event.
        """
        self.t = (self.t + 1) * ~restarting
        entering = self._enters_at.take(self.t)
        # The step that changes rooms does nothing else. So an object taken is always followed by a
        # frame of its room: every critical step can be seen.
        moving = ~entering
        self.heading = (self.heading + _TURN[actions] * moving) % NUM_HEADINGS
        self._walk(_AHEAD[actions] * moving)
        taking = moving & (self.stage == OBJECT_ROOM) & (self._taken == NOTHING)
        takes = self._take(taking) if count_nonzero(taking) else self._nobody
        self._takes = takes.copy()
        waiting = moving & (self.stage == WAITING_ROOM)
        eats = self._eat(waiting) if count_nonzero(waiting) else self._nobody
        picking = moving & (self.stage == TREE_ROOM) & (self._taken == 0)
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
        bounds = self._bounds[self.stage]
        target = self.xy + ahead[:, None] * FORWARDS[self.heading]
        target = np.minimum(np.maximum(target, -bounds), bounds)
        # An object is in the way if it can be neither taken nor stood on.
        solid = self._lies & ((self.stage == OBJECT_ROOM) & (self._taken != NOTHING))[:, None]
        solid[:, 1] |= self._lies[:, 1] & (self.stage == TREE_ROOM)
        trunk = self.stage == TREE_ROOM
        blocked = trunk & self._runs_into(target, self._tree_xy, TREE_BLOCK)
        for which in (0, 1):
            at = self._object_xy[:, which]
            blocked |= solid[:, which] & self._runs_into(target, at, BLOCK)
        self.xy = np.where(blocked[:, None], self.xy, target)

    def _runs_into(self, target: np.ndarray, thing: np.ndarray, radius: float) -> np.ndarray:
        """Who would come too near to a thing, bool ``[n]``; going away is always allowed."""
        after = _squared(target - thing)
        return (after < radius * radius) & (after < _squared(self.xy - thing))

    def _take(self, who: np.ndarray) -> np.ndarray:
        """The nearer object that is touched is taken; the other one is then out of reach."""
        distance = _squared(self._object_xy - self.xy[:, None])
        nearer = distance.argmin(axis=1)
        takes = who & (distance.min(axis=1) < TOUCH * TOUCH)
        self._taken = np.where(takes, nearer, self._taken)
        self._lies[takes, nearer[takes]] = False
        return takes

    def _eat(self, who: np.ndarray) -> np.ndarray:
        """An apple that is touched is gone, another one grows elsewhere."""
        touched = _squared(self._apple_xy - self.xy[:, None]) < APPLE_TOUCH * APPLE_TOUCH
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
        picks = who & (_squared(self._object_xy[:, 0] - self.xy) < STAND * STAND)
        self.raised = picks.copy()
        self._orange_hangs &= ~picks
        return picks

    def _luck(self, who: np.ndarray) -> np.ndarray:
        """Numbers in [0, 1) for this step of environments ``who``."""
        return placement.uniform(self._words[who], self._places[self.t[who]])

    def _enter(self, who: np.ndarray) -> None:
        """Put environments ``who`` at the start of the stage that their step counter names."""
        stage = self._stage_at[self.t[who]]
        self.stage[who] = stage
        self.xy[who] = self._start[stage]
        self.raised[who] = False
        self._takes[who] = False
        self._lies[who] = False
        begins = who[stage == OBJECT_ROOM]
        if begins.size:
            self._begin(begins)
        self.heading[who] = 0
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
        for index, (flat, other) in zip(who.tolist(), drawn.colour.tolist(), strict=True):
            self._colour[index] = self._colours[flat], self._colours[other]
        if self._repaints:
            self._repaint(who.tolist())
        self._object_xy[who] = drawn.xy
        self._object_heading[who] = drawn.heading
        self._lies[who] = True
        self._taken[who] = NOTHING

    def _repaint(self, who: list[int]) -> None:
        """Objects and rooms in colours of this episode alone."""
        for index in who:
            paint = colours.draw(self._words[index])
            self._colour[index] = paint.objects
            self._painted[index] = paint.on(self.stages)

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

    def room(self, index: int) -> Room:
        """Where the agent of environment ``index`` is, in the colours of its episode."""
        return self._painted[index][self.stage[index]].room

    def things(self, index: int) -> list[Thing]:
        """What stands in the room of environment ``index``."""
        found = [
            Thing(
                int(self._kind[index, which]),
                *self._object_xy[index, which].tolist(),
                int(self._object_heading[index, which]),
                self._colour[index][which],
            )
            for which in (0, 1)
            if self._lies[index, which]
        ]
        if self._takes[index]:
            found.append(self._held(index))
        if self.stage[index] == WAITING_ROOM:
            for number, (x, y) in enumerate(self._apple_xy[index].tolist()):
                found.append(Thing(scene.FIRST_APPLE + number, x, y))
        elif self.stage[index] == TREE_ROOM:
            found.append(Thing(scene.TREE, *self._tree_xy[index].tolist()))
            if self._orange_hangs[index]:
                found.append(Thing(scene.ORANGE_TO_PICK, *self._orange_xy[index].tolist()))
        return found

    def _held(self, index: int) -> Thing:
        """An object is held up before the eye on the step it is taken, then it is put away.

        So the frame of the critical step shows what happened, and later ones do not.
        """
        which = self._taken[index]
        heading = self.heading[index]
        return Thing(
            int(self._kind[index, which]),
            *(self.xy[index] + HELD_AHEAD * FORWARDS[heading]).tolist(),
            int(self._object_heading[index, which]),
            self._colour[index][which],
            HELD_UP,
        )

    def view(self, index: int) -> View:
        """Everything about game ``index``, what is carried included."""
        taken = int(self._taken[index])
        return View(
            stage=self._painted[index][self.stage[index]],
            step=int(self.t[index]),
            last_step=self.last_step,
            xy=tuple(self.xy[index].tolist()),
            heading=int(self.heading[index]),
            raised=bool(self.raised[index]),
            carried=None if taken == NOTHING else int(self._kind[index, taken]),
            things=tuple(self.things(index)),
        )


def _squared(difference: np.ndarray) -> np.ndarray:
    """Squared lengths of ``[..., 2]``."""
    return difference[..., 0] ** 2 + difference[..., 1] ** 2
