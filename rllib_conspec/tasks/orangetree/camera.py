"""What the agent sees: a room's backdrop, and before it the things, by MuJoCo's rays.

Rays are cast only inside the screen boxes of the things in the room: elsewhere they hit nothing.

Pixels are the same on every machine: they come from additions, products, divisions and comparisons,
and from sines rounded to 12 digits.
"""

import mujoco
import numpy as np

from rllib_conspec.tasks.orangetree import scene
from rllib_conspec.tasks.orangetree.backdrop import Backdrop
from rllib_conspec.tasks.orangetree.layout import EYE, FORWARDS, NUM_HEADINGS, RAISED, RIGHTS
from rllib_conspec.tasks.orangetree.scene import Thing
from rllib_conspec.tasks.orangetree.screen import (
    ALONG,
    SIZE,
    U,
    V,
    darker,
    pack,
    screen_box,
    unpack,
)

FAR = 100.0
OUT_OF_SIGHT = (0.0, 0.0, -10.0 * FAR)
LIGHT = (0.35, -0.55, 0.76)  # where light comes from, about unit length
AMBIENT, DIFFUSE = 0.66, 0.4
_FORWARDS, _RIGHTS = FORWARDS.tolist(), RIGHTS.tolist()


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
        rays[..., :2] = ALONG[:, None]
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
        unpack(picture, out)

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
        np.copyto(patch, darker(patch), where=inside)

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
