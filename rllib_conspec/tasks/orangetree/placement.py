"""Where things lie, from random numbers: one row of uniform numbers per episode or apple.

Every function maps ``u`` ``[n, count]`` in [0, 1) to arrays with ``n`` rows, so a row's result does
not depend on the other rows.
"""

from dataclasses import dataclass

import numpy as np

from rllib_conspec.tasks import noise
from rllib_conspec.tasks.orangetree.layout import (
    BALL,
    BOX,
    COLOURS,
    FORWARDS,
    NUM_APPLES,
    NUM_HEADINGS,
    OBJECT_ROOM_START,
    UNDER_TREE,
)

# Numbers per step: for objects, tree, or apples.
DRAWS = max(11, 4, 2 * NUM_APPLES)

# South of the tree, so that the agent sees it before it meets the trunk.
_SIDES_OF_TREE = np.array([5, 6, 7])


def uniform(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), float64 ``[n, count]``, of episode words ``[n]``; see ``noise.draws``."""
    return (noise.draws(words, places) >> np.uint64(11)) * 2.0**-53


@dataclass
class Objects:
    """Two objects per episode, the flat one first; ``xy`` is ``[n, 2, 2]``, the rest ``[n, 2]``."""

    kind: np.ndarray
    colour: np.ndarray
    xy: np.ndarray
    heading: np.ndarray


def objects(u: np.ndarray) -> Objects:
    """The object room: one object on the left, one on the right."""
    kind = np.array([BOX, BALL]) + (u[:, 0:2] * 2).astype(int)
    colour = (u[:, 2:4] * len(COLOURS)).astype(int)
    # Far enough aside not to touch each other, near enough to be in the first picture.
    ahead = _between(u[:, 6:8], 1.0, 2.4)
    x = _between(u[:, 4:6], 0.75, 0.75 * ahead)
    y = ahead + OBJECT_ROOM_START[1]
    flat_side = np.where(u[:, 8] < 0.5, -1.0, 1.0)
    x *= np.stack([flat_side, -flat_side], axis=1)
    return Objects(kind, colour, np.stack([x, y], axis=2), _turned(u[:, 9:11]))


def tree(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where tree and object stand in the tree room, ``[n, 2]`` each, and the object's heading."""
    trunk = np.stack([_between(u[:, 0], -1.0, 1.0), _between(u[:, 1], 0.3, 1.1)], axis=1)
    side = _SIDES_OF_TREE[(u[:, 2] * len(_SIDES_OF_TREE)).astype(int)]
    return trunk, trunk + UNDER_TREE * FORWARDS[side], _turned(u[:, 3])


def apples(u: np.ndarray, half: tuple[float, float]) -> np.ndarray:
    """Places in a room of half size ``half``, ``[n, 2]``, away from its walls."""
    return _between(u, -1.0, 1.0) * (np.array(half) - 0.6)


def _between(u: np.ndarray, low: float, high: float | np.ndarray) -> np.ndarray:
    return low + u * (high - low)


def _turned(u: np.ndarray) -> np.ndarray:
    return (u * NUM_HEADINGS).astype(int)
