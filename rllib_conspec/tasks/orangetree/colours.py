"""Colours of the variant ``random``: objects, walls and floors, drawn anew for every episode.

They come from the whole colour cube, but keep away from what things of the same kind look like in
training, and objects from the wall and the floor that they are seen before.

Distances are "redmean", an RGB distance with weights that follow the eye, up to 765. It takes
arithmetic alone, no powers, so that all machines draw the same colours.
"""

from dataclasses import dataclass, replace

import numpy as np

from rllib_conspec.tasks import noise
from rllib_conspec.tasks.orangetree.layout import COLOURS, WAITING_ROOM, Stage, stages

# From every training colour of the same kind of thing: seven of ten colours are that far from all
# six of the objects. Grey and pink walls are 159 apart, red and magenta 248.
NEW = 120.0
# Between what is seen before one another, whatever the light. In training the nearest are peach
# and the wall, 85, and wall and floor, 82.
VISIBLE = 80.0

# How bright a colour is painted: on the darkest side or far away, between, on the lightest or near.
OBJECT_SHADES = np.array([0.66, 0.86, 1.06])
WALL_SHADES = np.array([0.6, 0.8, 1.0])
FLOOR_SHADES = np.array([0.7, 0.88, 1.06])

_TRIES = 48  # about every second one is good enough
_PLACES = noise.places(6, _TRIES).reshape(1, -1)
_STREAM = np.uint64(0xC0105)  # numbers of their own, not those that say where things lie
_BITS = np.array([0, 8, 16], np.uint64)
_BYTE = np.uint64(255)

_OBJECTS = np.array(list(COLOURS.values()), float)
_WALLS = np.array([stage.room.wall for stage in stages()], float)
_FLOORS = np.array([stage.room.floor for stage in stages()], float)

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Paint:
    """The colours of one episode: of the two objects, of wall and floor in object and tree room,
    and of wall and floor in the waiting room.
    """

    objects: tuple[Colour, Colour]
    room: tuple[Colour, Colour]
    waiting: tuple[Colour, Colour]

    def on(self, order: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """The stages in these colours; ceiling and sky keep theirs."""
        colours = [self.waiting if n == WAITING_ROOM else self.room for n in range(len(order))]
        return tuple(
            replace(stage, room=replace(stage.room, wall=wall, floor=floor))
            for stage, (wall, floor) in zip(order, colours, strict=True)
        )


def draw(word: np.uint64) -> Paint:
    """Colours of the episode that ``word`` names, one of ``noise.episode_words``."""
    numbers = noise.draws(noise.mix(np.array([word]) ^ _STREAM), _PLACES)
    tries = ((numbers.reshape(6, _TRIES, 1) >> _BITS) & _BYTE).astype(float)
    wall = _choose(tries[0], _WALLS)
    floor = _choose(tries[1], _FLOORS, FLOOR_SHADES, wall * WALL_SHADES[:, None])
    before = np.concatenate([wall * WALL_SHADES[:, None], floor * FLOOR_SHADES[:, None]])
    objects = [_choose(tries[n], _OBJECTS, OBJECT_SHADES, before) for n in (2, 3)]
    waiting_wall = _choose(tries[4], _WALLS)
    behind = waiting_wall * WALL_SHADES[:, None]
    waiting_floor = _choose(tries[5], _FLOORS, FLOOR_SHADES, behind)
    return Paint(
        (_colour(objects[0]), _colour(objects[1])),
        (_colour(wall), _colour(floor)),
        (_colour(waiting_wall), _colour(waiting_floor)),
    )


def distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Redmean between colours ``[..., rgb]``, float ``[...]``."""
    red = (one[..., 0] + other[..., 0]) / 512
    squared = (one - other) ** 2
    weighted = (2 + red) * squared[..., 0] + 4 * squared[..., 1]
    return np.sqrt(weighted + (2 + 255 / 256 - red) * squared[..., 2])


def _choose(
    tries: np.ndarray,
    training: np.ndarray,
    shades: np.ndarray | None = None,
    behind: np.ndarray | None = None,
) -> np.ndarray:
    """The first of ``tries`` ``[n, rgb]`` that is new and, in all ``shades`` ``[s]``, to be seen
    before the colours ``behind`` ``[m, rgb]``; if there is none, the one that comes nearest to it.
    """
    fitness = distance(tries[:, None], training).min(axis=1) / NEW
    if behind is not None:
        shown = tries[:, None, None] * shades[:, None, None]
        fitness = np.minimum(fitness, distance(shown, behind).min(axis=(1, 2)) / VISIBLE)
    return tries[np.minimum(fitness, 1.0).argmax()]


def _colour(values: np.ndarray) -> Colour:
    red, green, blue = values.astype(int).tolist()
    return red, green, blue
