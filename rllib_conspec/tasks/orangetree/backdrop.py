"""A room without things: floor, walls and what is above them, by arithmetic alone.

The eye looks straight ahead, so a wall has one depth per column and the floor one depth per row.
"""

from functools import lru_cache

import numpy as np

from rllib_conspec.tasks.orangetree.layout import EYE, RAISED, Room
from rllib_conspec.tasks.orangetree.screen import ALONG, HALF, REACH, SIZE, V, pack

FOG = 0.035  # loss of brightness per metre
WALL_SHADES = np.array([1.0, 0.82, 0.9, 0.74])  # north, south, east, west
PANEL_SHADE = 0.93  # of every second panel of a wall
FLOOR_CONTRAST = 0.09
TILE = 1.0  # width of the floor's tiles and of the walls' panels
_SIGNS = np.sign(ALONG)
_ABOVE_SHADES = 0.8 + 0.2 * V[:HALF, None] / REACH


class Backdrop:
    """A room without things, in its colours for both heights of the eye.

    It is made anew whenever an agent enters a room, so what all rooms share is made once.
    """

    def __init__(self, room: Room):
        self.room = room
        self._eyes = [_eye(EYE), _eye(EYE + RAISED)]
        self._edge = np.array(room.half) * _SIGNS  # the wall a column would meet
        floor, above = np.array(room.floor), np.array(room.above)
        self._floors = [pack(floor * eye.floor_shades)[:, :, None] for eye in self._eyes]
        self._above = pack(above * _ABOVE_SHADES)[:, None]

    def paint(self, xy: np.ndarray, heading: int, raised: int) -> np.ndarray:
        """Packed picture, uint32 ``[84, 84]``."""
        eye = self._eyes[raised]
        along = ALONG[heading]
        depths = (self._edge[heading] - xy) / along
        ends = depths[:, 1] < depths[:, 0]  # the wall in the north or south comes first
        depth = np.where(ends, depths[:, 1], depths[:, 0])
        wall = self._walls(xy, along, depth, ends)
        picture = np.empty((SIZE, SIZE), np.uint32)
        upper = V[:HALF, None] * depth < self.room.height - eye.height
        picture[:HALF] = np.where(upper, wall, self._above)
        east, north = (eye.floor_points[heading] + xy[:, None, None] / TILE).astype(np.int32)
        odd = ((east ^ north) & 1).astype(bool)
        floor = np.where(odd, *self._floors[raised])
        picture[HALF:] = np.where(eye.floor_depth < depth, floor, wall)
        return picture

    def _walls(
        self, xy: np.ndarray, along: np.ndarray, depth: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """Packed colour of the wall in each column, ``[84]``."""
        positive = np.where(ends, along[:, 1], along[:, 0]) > 0
        shade = WALL_SHADES[np.where(ends, 0, 2) + ~positive]
        at = xy + along * depth[:, None]
        panel = np.floor(np.where(ends, at[:, 0], at[:, 1]) / TILE).astype(int) & 1
        shade = shade * (1.0 - FOG * depth) * np.where(panel, PANEL_SHADE, 1.0)
        return pack(np.array(self.room.wall) * shade[:, None])


class _Eye:
    """What depends on the height of the eye: places and brightness of the floor by row."""

    def __init__(self, height: float):
        self.height = height
        depth = height / -V[HALF:]
        self.floor_depth = depth[:, None]
        # Added to the agent's place this is the point of the floor in a pixel, and positive, so
        # that cutting off digits rounds down: [heading, xy, row, column].
        along = np.moveaxis(ALONG, 2, 1).copy()
        self.floor_points = (along[:, :, None] * depth[:, None] + 1000.0) / TILE
        fog = 1.0 - FOG * np.minimum(depth, 12.0)
        # Far tiles would flicker: the pattern fades.
        contrast = FLOOR_CONTRAST * np.clip(1.0 - depth / 8.0, 0.0, 1.0)
        # Light tiles, dark tiles: [2, row, 1].
        self.floor_shades = np.stack([fog * (1.0 + sign * contrast) for sign in (1, -1)])[..., None]


_eye = lru_cache(maxsize=2)(_Eye)
