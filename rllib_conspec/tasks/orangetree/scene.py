"""The MuJoCo scene: every kind of thing once, the apples several times, each on a mocap body.

Mocap bodies go wherever they are put, and out of sight if the room has none of them. So one model
serves every stage and environment of a process.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import mujoco
import numpy as np

from rllib_conspec.tasks.orangetree.layout import KINDS, NUM_APPLES, NUM_HEADINGS

BARK, LEAVES, ORANGE = (135, 88, 50), (55, 140, 60), (255, 145, 10)
APPLE, STEM = (200, 20, 35), (90, 60, 30)


@dataclass(frozen=True)
class Body:
    """A thing that can be put somewhere.

    ``bounds`` are upright cylinders (radius, from, to) that hold it, as heights above the floor:
    where on the screen rays are needed. ``lift`` is the height of its origin, ``shadow`` the radius
    of the dark disc under it.
    """

    name: str
    geoms: tuple[str, ...]
    bounds: tuple[tuple[float, float, float], ...]
    shadow: float
    lift: float = 0.0

    def xml(self) -> str:
        geoms = "".join(f"<geom {geom}/>" for geom in self.geoms)
        return f'<body name="{self.name}" mocap="true">{geoms}</body>'


def _geom(shape: str, size: str, pos: str, colour: tuple[int, int, int] | None = None) -> str:
    """Without a colour the geom is painted for each picture."""
    rgba = " ".join(str(c / 255) for c in colour or (0, 0, 0))
    return f'type="{shape}" size="{size}" pos="{pos}" rgba="{rgba} 1"'


def _box() -> Body:
    geoms = (_geom("box", ".5 .5 .25", "0 0 .25"),)
    return Body("box", geoms, ((0.71, 0.0, 0.5),), shadow=0.64)


def _table() -> Body:
    corners = [(x, y) for x in (-0.46, 0.46) for y in (-0.46, 0.46)]
    legs = [_geom("box", ".08 .08 .22", f"{x} {y} .22") for x, y in corners]
    top = _geom("box", ".56 .56 .06", "0 0 .5")
    return Body("table", (top, *legs), ((0.8, 0.0, 0.56),), shadow=0.6)


def _ball() -> Body:
    return Body("ball", (_geom("sphere", ".45", "0 0 .45"),), ((0.45, 0.0, 0.9),), shadow=0.4)


def _jack() -> Body:
    """Three crossed rods with knobs, resting on three of its six tips."""
    across, up, side = (2 / 3) ** 0.5, (1 / 3) ** 0.5, 0.5**0.5
    reach, knob = 0.5, 0.13
    geoms = []
    for d in ((across, 0.0, up), (-across / 2, side, up), (-across / 2, -side, up)):
        tip, back = (" ".join(f"{s * reach * c:.6f}" for c in d) for s in (1, -1))
        geoms.append(f'type="capsule" size=".07" fromto="{back} {tip}" rgba="0 0 0 1"')
        geoms += [_geom("sphere", f"{knob}", tip), _geom("sphere", f"{knob}", back)]
    lift = reach * up + knob
    bounds = (reach * across + knob, 0.0, 2 * lift)
    return Body("jack", tuple(geoms), (bounds,), shadow=0.4, lift=lift)


def _apple(number: int) -> Body:
    geoms = (_geom("sphere", ".19", "0 0 .19", APPLE), _geom("capsule", ".03 .06", "0 0 .41", STEM))
    return Body(f"apple {number}", geoms, ((0.19, 0.0, 0.5),), shadow=0.2)


def _tree() -> Body:
    trunk = _geom("cylinder", ".2 .95", "0 0 .95", BARK)
    crown = (
        _geom("ellipsoid", "1.15 1.15 .7", "0 0 2.4", LEAVES),
        _geom("sphere", ".6", ".5 .2 2.65", LEAVES),
        _geom("sphere", ".6", "-.45 .3 2.6", LEAVES),
        _geom("sphere", ".55", "0 -.45 2.7", LEAVES),
    )
    places = ("-.75 -.7 2.1", ".85 -.6 2.2", ".1 -1.1 2.3", "-.35 -.95 2.75", ".55 -.9 2.75")
    places += ("-1.1 .1 2.3", "1.1 .2 2.3", "-.7 .8 2.3", ".5 .95 2.2", "0 .95 2.65")
    oranges = (_geom("sphere", ".15", place, ORANGE) for place in places)
    bounds = ((0.2, 0.0, 1.9), (1.27, 1.69, 3.26))
    return Body("tree", (trunk, *crown, *oranges), bounds, shadow=0.9)


def _orange() -> Body:
    """The one that can be picked: it hangs lowest, above the place under the tree."""
    geoms = (_geom("sphere", ".17", "0 0 0", ORANGE),)
    return Body("orange", geoms, ((0.17, 1.68, 2.02),), shadow=0.0, lift=1.85)


class Thing(NamedTuple):
    """Something in the room: a row of ``BODIES``, its place, and for objects its colour.

    ``up`` is how high it is held above where it would lie.
    """

    row: int
    x: float
    y: float
    heading: int = 0
    colour: tuple[int, int, int] | None = None
    up: float = 0.0


# Objects come first, so that a kind is also its row.
BODIES = (
    *(_box(), _table(), _ball(), _jack()),
    *(_apple(number) for number in range(NUM_APPLES)),
    *(_tree(), _orange()),
)
FIRST_APPLE = len(KINDS)
TREE = FIRST_APPLE + NUM_APPLES
ORANGE_TO_PICK = TREE + 1


@lru_cache(maxsize=1)
def model() -> mujoco.MjModel:
    """The model, compiled once per process; nothing changes it afterwards.

    Row i of ``mocap_pos`` moves ``BODIES[i]``.
    """
    bodies = "".join(body.xml() for body in BODIES)
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


def geom_rows() -> np.ndarray:
    """Row in ``BODIES`` of every geom, int ``[ngeom]``."""
    return model().geom_bodyid - 1


def geom_colours() -> np.ndarray:
    """Colour of every geom, float64 ``[ngeom, rgb]`` up to 255; 0 for those that are painted."""
    return np.round(model().geom_rgba[:, :3].astype(float) * 255)


def heading_quaternions() -> np.ndarray:
    """Rotation about z for each heading, ``[12, 4]``, rounded like the headings themselves."""
    half = np.pi * np.arange(NUM_HEADINGS) / NUM_HEADINGS
    zero = np.zeros(NUM_HEADINGS)
    return np.round(np.stack([np.cos(half), zero, zero, np.sin(half)], axis=1), 12)
