"""What the agent sees: one pixel per cell, nothing about what it holds."""

import numpy as np

from rllib_conspec.tasks.keys.layout import CELLS, NOWHERE, Stage

AGENT = (255, 255, 255)
APPLE = (0, 140, 0)
WALL = (110, 110, 110)
KEY_COLOURS = {1: (255, 220, 0), 2: (0, 160, 255), 3: (255, 60, 60), 4: (200, 80, 255)}
# A door that asks for several keys has a colour of its own.
SHARED_DOOR = (150, 90, 30)
FLOORS = {"key": (0, 0, 0), "waiting": (0, 0, 40), "exit": (40, 0, 0)}


def floor_colour(stage: Stage) -> tuple[int, int, int]:
    kind = "waiting" if stage.waiting else "exit" if stage.exit else "key"
    return FLOORS[kind]


def door_colour(stage: Stage) -> tuple[int, int, int]:
    """A darker shade of its key, so that a door is never mistaken for the key itself."""
    if len(stage.opened_by) > 1:
        return SHARED_DOOR
    red, green, blue = KEY_COLOURS[stage.opened_by[0]]
    return red * 6 // 10, green * 6 // 10, blue * 6 // 10


def stage_pictures(order: tuple[Stage, ...]) -> np.ndarray:
    """Every room without agent and apples.

    Returns uint8 ``[stage, key is gone (0/1), door is open (0/1), cell, rgb]``.
    """
    pictures = np.zeros((len(order), 2, 2, CELLS, 3), np.uint8)
    for number, stage in enumerate(order):
        pictures[number] = floor_colour(stage)
        pictures[number][:, :, list(stage.room.walls)] = WALL
        if stage.room.key != NOWHERE:
            pictures[number, 0, :, stage.room.key] = KEY_COLOURS[stage.key]
        if stage.room.door != NOWHERE:
            pictures[number, :, 0, stage.room.door] = door_colour(stage)
    return pictures
