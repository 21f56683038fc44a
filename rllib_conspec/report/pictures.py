"""An observation as a picture that a person can see something in."""

from __future__ import annotations

import numpy as np

COLOURS = 3


def to_picture(observation: np.ndarray, channels: str | None = None) -> np.ndarray | None:
    """uint8 [H, W, 3] of an observation; None if it is a vector.

    Args:
        channels: Where the channels of [?, ?, ?] are: "first" or "last". By default on the
            shorter side.
    """
    if observation.ndim < 2:
        return None
    while observation.ndim > 3:  # a stack of pictures: the newest one
        observation = observation[-1]
    if observation.ndim == 2:
        observation = observation[..., None]
    elif (channels or _guess(observation.shape)) == "first":
        observation = np.moveaxis(observation, 0, -1)
    # More channels than colours are a stack of frames, of which the last is the newest.
    newest = COLOURS if observation.shape[-1] % COLOURS == 0 else 1
    picture = _stretched(observation[..., -newest:])
    return np.repeat(picture, COLOURS // newest, axis=-1)


def _guess(shape: tuple[int, ...]) -> str:
    return "first" if shape[0] < shape[-1] else "last"


def _stretched(picture: np.ndarray) -> np.ndarray:
    """uint8, of which the brightest value is white: grids count from 0 to 10, and would be black.

    Ordinary pictures, which reach half of 255, stay as they are.
    """
    if np.issubdtype(picture.dtype, np.integer) and picture.min() >= 0 and picture.max() >= 128:
        return np.minimum(picture, 255).astype(np.uint8)
    values = picture.astype(np.float64)
    low, high = min(0.0, values.min()), values.max()
    return (255 * (values - low) / max(high - low, 1e-9)).round().astype(np.uint8)
