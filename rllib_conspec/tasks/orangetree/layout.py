"""What OrangeTree is made of: stages, rooms, kinds of objects, colours, variants.

Lengths are in metres, x to the east, y to the north, z up. The agent has a place on the floor and
one of 12 headings. Rooms are centred on the origin.

Sizes and distances are chosen so that a random policy takes an object in about half of the
episodes, a flat one in a quarter, and picks the orange in 4 to 5 %;
``tests/tasks/orangetree/test_difficulty.py`` holds them to that.
"""

import math
from dataclasses import dataclass

import numpy as np

from rllib_conspec.errors import OptionError, did_you_mean

FORWARD, BACK, TURN_LEFT, TURN_RIGHT = range(4)
ACTIONS = ("forward", "back", "turn left", "turn right")
STEP = 1.0
NUM_HEADINGS = 12

EYE = 1.0
RAISED = 0.5  # how much higher the eye is on a flat object
AGENT_RADIUS = 0.3


def _unit(heading: int) -> tuple[float, float]:
    """East and north parts of a heading; 0 is north, turning left adds 1."""
    angle = 2 * math.pi * heading / NUM_HEADINGS
    # Rounded, because the last digit of a sine depends on the machine's C library.
    return round(-math.sin(angle), 12) + 0.0, round(math.cos(angle), 12) + 0.0


FORWARDS = np.array([_unit(heading) for heading in range(NUM_HEADINGS)])
RIGHTS = np.stack([FORWARDS[:, 1], -FORWARDS[:, 0]], axis=1)

# --- objects ----------------------------------------------------------------------------------

BOX, TABLE, BALL, JACK = range(4)
KINDS = ("box", "table", "ball", "jack")
FLAT = np.array([True, True, False, False])
TOUCH = 0.9  # taken when the agent's centre is this near
BLOCK = 0.85  # what cannot be taken or stood on holds the agent at this distance
STAND = 0.7  # on a flat object when this near to its centre
HELD_AHEAD, HELD_UP = 1.4, 0.3  # where an object is seen on the step it is taken

COLOURS = {
    "magenta": (225, 30, 200),
    "blue": (30, 45, 235),
    "red": (220, 30, 30),
    "green": (30, 190, 50),
    "yellow": (245, 225, 30),
    "peach": (255, 190, 150),
}
BLACK = (26, 26, 26)

NUM_APPLES = 5
APPLE_TOUCH = 0.6

TREE_BLOCK = 0.5
UNDER_TREE = 1.05  # from the trunk to the object that lies under the tree

# --- rooms ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Room:
    """``half`` are half the width (x) and half the depth (y); ``above`` is ceiling or sky."""

    half: tuple[float, float]
    height: float
    wall: tuple[int, int, int]
    floor: tuple[int, int, int]
    above: tuple[int, int, int]
    start: tuple[float, float]


@dataclass(frozen=True)
class Stage:
    name: str
    steps: int
    room: Room


GREY, FLOOR_BLUE = (150, 150, 150), (70, 105, 165)
PINK, FLOOR_GREEN = (240, 130, 175), (70, 145, 85)
OBJECT_ROOM_START = (0.0, -1.8)
VARIANTS = ("train", "black", "room", "random")


def stages(variant: str = "train") -> tuple[Stage, Stage, Stage]:
    """Object room, waiting room, tree room. ``room`` repaints what is grey and blue; for ``random``
    every episode does, see ``colours.Paint.on``.
    """
    check_variant(variant)
    wall, floor = (PINK, FLOOR_GREEN) if variant == "room" else (GREY, FLOOR_BLUE)
    ceiling, sky = (205, 205, 200), (165, 215, 245)
    objects = Room((3.5, 3.0), 2.6, wall, floor, ceiling, OBJECT_ROOM_START)
    waiting = Room((4.5, 4.5), 1.7, (165, 110, 60), (205, 190, 140), sky, (0.0, 0.0))
    tree = Room((4.0, 4.0), 1.3, wall, floor, sky, (0.0, -2.2))
    return (
        Stage("object room", 15, objects),
        Stage("waiting room", 40, waiting),
        Stage("tree room", 10, tree),
    )


OBJECT_ROOM, WAITING_ROOM, TREE_ROOM = range(3)


def object_colours(variant: str) -> np.ndarray:
    """Colours an object may have, uint8 ``[6, rgb]``; ``black`` draws among as many, and ``random``
    replaces what was drawn.
    """
    check_variant(variant)
    colours = [BLACK] * len(COLOURS) if variant == "black" else list(COLOURS.values())
    return np.array(colours, np.uint8)


def check_variant(variant: str) -> None:
    if variant not in VARIANTS:
        hint = did_you_mean(variant, VARIANTS)
        raise OptionError(
            "variant", f"must be one of {', '.join(VARIANTS)}, not {variant!r}.{hint}"
        )


def episode_steps(order: tuple[Stage, ...]) -> int:
    return sum(stage.steps for stage in order)
