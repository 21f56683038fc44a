"""What the agent sees: 84×84 pixels, floor, walls and sky by arithmetic, everything else by rays.

The image plane stands one metre before the eye, so a ray is ``forward + u·right + v·up``. Rays are
cast only inside the screen boxes of the things in the room: elsewhere nothing could be hit. Pixels
are one 32-bit word each until the end, which makes choosing between two pictures one operation.

Pixels are the same on every machine: only additions, products, divisions and comparisons, and sines
rounded to 12 digits.
"""

from typing import NamedTuple

import mujoco
import numpy as np

from rllib_conspec.tasks.orangetree import scene
from rllib_conspec.tasks.orangetree.layout import (
    EYE,
    FORWARDS,
    NUM_HEADINGS,
    RAISED,
    RIGHTS,
    Room,
)

SIZE = 84
HALF = SIZE // 2
REACH = 1.0  # half the width of the image plane: 90 degrees
NEAR = 0.02
FAR = 100.0
OUT_OF_SIGHT = (0.0, 0.0, -10.0 * FAR)
FOG = 0.035  # loss of brightness per metre
LIGHT = np.array([0.35, -0.55, 0.76])  # where light comes from, about unit length
AMBIENT, DIFFUSE = 0.66, 0.4
WALL_SHADES = np.array([1.0, 0.82, 0.9, 0.74])  # north, south, east, west
TILE = 1.0  # of the floor's chequered pattern and of the walls' panels

_FORWARDS, _RIGHTS = FORWARDS.tolist(), RIGHTS.tolist()
_CENTRES = (np.arange(SIZE) + 0.5) / HALF - 1.0
U = _CENTRES * REACH
V = -_CENTRES * REACH


def pack(colours: np.ndarray) -> np.ndarray:
    """Colours ``[..., 3]`` as one uint32 word each, ``[...]``."""
    words = np.zeros((*colours.shape[:-1], 4), np.uint8)
    words[..., :3] = np.clip(colours, 0, 255)
    return words.view(np.uint32)[..., 0]


def _darker(words: np.ndarray) -> np.ndarray:
    """Packed colours at 5/8 of their brightness."""
    return ((words >> 1) & 0x7F7F7F7F) + ((words >> 3) & 0x1F1F1F1F)


class Backdrop:
    """A room without things. Tables for both heights of the eye are made once."""

    # Directions of columns on the floor, [heading, column, xy]; never 0, so that one can divide.
    ALONG = FORWARDS[:, None] + U[:, None] * RIGHTS[:, None]
    ALONG[np.abs(ALONG) < 1e-9] = 1e-9

    def __init__(self, room: Room):
        self.room = room
        self._eyes = [_Eye(room, EYE), _Eye(room, EYE + RAISED)]
        self._edge = np.array(room.half) * np.sign(self.ALONG)  # the wall a column would meet

    def paint(self, xy: np.ndarray, heading: int, raised: int) -> np.ndarray:
        """Packed picture, uint32 ``[84, 84]``."""
        eye = self._eyes[raised]
        along = self.ALONG[heading]
        depths = (self._edge[heading] - xy) / along
        north = depths[:, 1] < depths[:, 0]  # a wall in the north or south comes first
        depth = np.where(north, depths[:, 1], depths[:, 0])
        wall = self._walls(xy, along, depth, north)
        picture = np.empty((SIZE, SIZE), np.uint32)
        upper = V[:HALF, None] * depth < self.room.height - eye.height
        picture[:HALF] = np.where(upper, wall, eye.above)
        tiles = eye.floor_points[heading] + xy[:, None, None]
        odd = (tiles.astype(np.int32).sum(axis=0) & 1).astype(bool)
        floor = np.where(odd, eye.floor[0], eye.floor[1])
        picture[HALF:] = np.where(eye.floor_depth < depth, floor, wall)
        return picture

    def _walls(
        self, xy: np.ndarray, along: np.ndarray, depth: np.ndarray, north: np.ndarray
    ) -> np.ndarray:
        """Packed colour of the wall in each column, ``[84]``."""
        positive = np.where(north, along[:, 1], along[:, 0]) > 0
        shade = WALL_SHADES[np.where(north, 0, 2) + ~positive]
        at = xy + along * depth[:, None]
        panel = np.floor(np.where(north, at[:, 0], at[:, 1]) / TILE).astype(int) & 1
        shade = shade * (1.0 - FOG * depth) * (1.0 - 0.07 * panel)
        return pack(np.array(self.room.wall) * shade[:, None])


class _Eye:
    """What depends on the height of the eye: the floor's places and colours by row."""

    def __init__(self, room: Room, height: float):
        self.height = height
        depth = height / -V[HALF:]
        self.floor_depth = depth[:, None]
        # Added to the agent's place this is the point of the floor in a pixel, and positive, so
        # that cutting off digits rounds down: [heading, xy, row, column].
        along = np.moveaxis(Backdrop.ALONG, 2, 1)
        self.floor_points = (along[:, :, None] * depth[:, None] + 1000.0) / TILE
        fog = 1.0 - FOG * np.minimum(depth, 12.0)
        # Far tiles would flicker: the pattern fades.
        contrast = 0.09 * np.clip(1.0 - depth / 8.0, 0.0, 1.0)
        base = np.array(room.floor)
        self.floor = [
            pack(base * (fog * (1.0 + sign * contrast))[:, None])[:, None] for sign in (1, -1)
        ]
        self.above = pack(np.array(room.above) * (0.8 + 0.2 * V[:HALF, None] / REACH))[:, None]


class Thing(NamedTuple):
    """Something in the room: a row of ``scene.BODIES``, its place, and for objects its colour.

    ``up`` is how high it is held above where it would lie.
    """

    row: int
    x: float
    y: float
    heading: int = 0
    colour: tuple[int, int, int] | None = None
    up: float = 0.0


class Camera:
    """Takes pictures; holds one ``MjData``, so it is for one thread."""

    def __init__(self):
        self._model = scene.model()
        self._data = mujoco.MjData(self._model)
        self._pos, self._quat = self._data.mocap_pos, self._data.mocap_quat
        self._turns = scene.heading_quaternions()
        self._colours = scene.geom_colours()
        rows = scene.geom_rows()
        self._geoms = [np.flatnonzero(rows == row) for row in range(len(scene.BODIES))]
        rays = np.empty((NUM_HEADINGS, SIZE, SIZE, 3))
        rays[..., :2] = Backdrop.ALONG[:, None]
        rays[..., 2] = V[:, None]
        self._rays = rays.reshape(NUM_HEADINGS, SIZE * SIZE, 3)
        self._geom = np.empty(SIZE * SIZE, np.int32)
        self._depth = np.empty(SIZE * SIZE)
        self._normal = np.empty((SIZE * SIZE, 3))

    def take(
        self,
        backdrop: Backdrop,
        xy: np.ndarray,
        heading: int,
        raised: bool,
        things: list[Thing],
        out: np.ndarray,
    ) -> None:
        """Paint what is seen from ``xy`` into ``out``, uint8 ``[84, 84, 3]``."""
        picture = backdrop.paint(xy, heading, raised)
        eye = (*xy.tolist(), EYE + RAISED * raised)
        needed = self._prepare(picture, eye, heading, things)
        if needed is not None:
            self._cast(picture.reshape(-1), eye, heading, needed)
        channels = picture.view(np.uint8).reshape(SIZE, SIZE, 4)
        for channel in range(3):
            out[..., channel] = channels[..., channel]

    def _prepare(self, picture, eye, heading, things) -> np.ndarray | None:
        """Put things in their places and paint their shadows.

        Returns the pixels that need a ray, int ``[n]``, or None if there are none.
        """
        x, y, height = eye
        forward, right = _FORWARDS[heading], _RIGHTS[heading]
        mask = None
        self._pos[:] = OUT_OF_SIGHT
        for row, thing_x, thing_y, turned, colour, up in things:
            body = scene.BODIES[row]
            east, north = thing_x - x, thing_y - y
            ahead = east * forward[0] + north * forward[1]
            aside = east * right[0] + north * right[1]
            if body.shadow and not up:
                box = screen_box(ahead, aside, body.shadow, -height, -height)
                if box is not None:
                    self._shade(picture, box, height, ahead, aside, body.shadow)
            for radius, low, high in body.bounds:
                box = screen_box(ahead, aside, radius, low + up - height, high + up - height)
                if box is None:
                    continue
                if mask is None:
                    mask = np.zeros((SIZE, SIZE), bool)
                mask[box] = True
            self._pos[row] = thing_x, thing_y, body.lift + up
            self._quat[row] = self._turns[turned]
            if colour is not None:
                self._colours[self._geoms[row]] = colour
        return None if mask is None else mask.reshape(-1).nonzero()[0]

    def _shade(self, picture, box, height, ahead, aside, radius) -> None:
        """Darken the floor's disc of ``radius`` around a thing."""
        rows, columns = box
        depth = height / -V[rows, None]
        far = depth - ahead
        off = depth * U[columns] - aside
        inside = far * far + off * off < radius * radius
        patch = picture[box]
        np.copyto(patch, _darker(patch), where=inside)

    def _cast(self, pixels, eye, heading, needed) -> None:
        """Paint what rays through the ``needed`` pixels hit."""
        count = needed.size
        geom, normal = self._geom[:count], self._normal[:count]
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_multiRay(
            self._model,
            self._data,
            np.array(eye),
            self._rays[heading].take(needed, axis=0).reshape(-1),
            None,  # geoms of every group
            True,  # static bodies too
            -1,  # no body left out
            geom,
            self._depth[:count],
            normal.reshape(-1),
            count,
            FAR,
        )
        hit = (geom >= 0).nonzero()[0]
        normal = normal.take(hit, axis=0)
        light = normal[:, 0] * LIGHT[0] + normal[:, 1] * LIGHT[1] + normal[:, 2] * LIGHT[2]
        light = AMBIENT + DIFFUSE * np.maximum(light, 0.0)
        colour = self._colours.take(geom.take(hit), axis=0) * light[:, None]
        pixels[needed.take(hit)] = pack(colour)


def screen_box(
    ahead: float, aside: float, radius: float, low: float, high: float
) -> tuple[slice, slice] | None:
    """Rows and columns of the picture that hold an upright cylinder, or None if it is not seen.

    Its axis is ``ahead`` and ``aside`` of the eye; ``low`` and ``high`` are above the eye's height.
    An edge is farthest from the picture's middle at the near depth if it lies outside of it, at the
    far depth otherwise: both depths matter.
    """
    far = ahead + radius
    if far <= NEAR:
        return None
    near = max(ahead - radius, NEAR)
    left, right = aside - radius, aside + radius
    first = _pixel(left / (near if left < 0 else far))
    last = _pixel(right / (near if right > 0 else far))
    top = _pixel(-high / (near if high > 0 else far))
    bottom = _pixel(-low / (near if low < 0 else far))
    if first >= SIZE or last < 0 or top >= SIZE or bottom < 0:
        return None
    return slice(max(top, 0), bottom + 1), slice(max(first, 0), last + 1)


def _pixel(place: float) -> int:
    """Column (or row) that holds a place on the image plane, -1 or less before the first one."""
    return int((place / REACH + 1.0) * HALF + 1000.0) - 1000 if place > -20 else -1
