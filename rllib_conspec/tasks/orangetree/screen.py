"""The picture's geometry: which way each pixel looks, and which pixels a thing can cover.

The image plane stands one metre before the eye. The pixel of row r and column c looks along
``forward + U[c]·right + V[r]·up``, so a number of such rays long is also so many metres ahead.
Pixels are handled as one 32-bit word each: choosing between two colours is then one operation.
"""

import numpy as np

from rllib_conspec.tasks.orangetree.layout import FORWARDS, RIGHTS

SIZE = 84
HALF = SIZE // 2
REACH = 1.0  # half the width of the image plane: 90 degrees
NEAR = 0.02

_CENTRES = (np.arange(SIZE) + 0.5) / HALF - 1.0
U = _CENTRES * REACH
V = -_CENTRES * REACH
# Where columns look on the floor, [heading, column, xy]; never 0, so that one can divide by it.
ALONG = FORWARDS[:, None] + U[:, None] * RIGHTS[:, None]
ALONG[np.abs(ALONG) < 1e-9] = 1e-9


def pack(colours: np.ndarray) -> np.ndarray:
    """Colours ``[..., 3]`` as one uint32 word each, ``[...]``."""
    words = np.zeros((*colours.shape[:-1], 4), np.uint8)
    words[..., :3] = np.minimum(colours, 255)
    return words.view(np.uint32)[..., 0]


def unpack(words: np.ndarray, out: np.ndarray) -> None:
    """Write packed colours ``[84, 84]`` into ``out``, uint8 ``[84, 84, 3]``."""
    channels = words.view(np.uint8).reshape(SIZE, SIZE, 4)
    for channel in range(3):
        out[..., channel] = channels[..., channel]


def darker(words: np.ndarray) -> np.ndarray:
    """Packed colours at 5/8 of their brightness."""
    return ((words >> 1) & 0x7F7F7F7F) + ((words >> 3) & 0x1F1F1F1F)


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
