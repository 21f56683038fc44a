"""Pictures a little moved, or with a part of them hidden: what a policy should not care about.

Raw pictures in, raw pictures out, in the type that they came in. Both draw from torch's global
generator, which learners seed for every update. A sequence [N, T, …] is moved or hidden as one: a
policy with a memory would take a picture that jumps from step to step for something that happens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rllib_conspec.errors import OptionError

# A picture of 84×84 may be moved by 6 pixels: a crop of 84×84 out of 96×96, as in CURL and RAD.
SIDES_PER_PAD = 14
SMALLEST_CUT, LARGEST_CUT = 1 / 8, 1 / 3  # of a side


def pad_for(shape: tuple[int, ...], pad: int | None = None) -> int:
    """Pixels by which pictures of this shape are moved: `pad`, or a fourteenth of the shorter side.

    An OptionError says where they are no pictures, or would be moved out of sight.
    """
    if len(shape) != 3:
        raise OptionError("", "is for pictures, and these observations are vectors.")
    _, side, _ = sorted(shape)  # there are fewer channels than rows or columns
    if pad is not None and pad >= side:
        raise OptionError(
            "pad",
            f"a crop out of {side + 2 * pad} pixels can miss a picture of {side} altogether; "
            f"use at most {side - 1}.",
        )
    return -(-side // SIDES_PER_PAD) if pad is None else pad


def shift(frames: Tensor, pad: int, channels: str = "last") -> Tensor:
    """Pictures [N, …, height, width, channels], each of the N moved by up to `pad` pixels up or
    down and left or right; with `channels` first, [N, …, channels, height, width].

    That is a crop of the picture's own size, anywhere out of the picture with `pad` black pixels
    around it. The crop in the middle is the picture itself.
    """
    if channels == "first":
        return shift(frames.movedim(-3, -1), pad).movedim(-1, -3)
    height, width = frames.shape[-3:-1]
    padded = nn.functional.pad(frames, (0, 0, pad, pad, pad, pad))
    corners = torch.randint(2 * pad + 1, (len(frames), 2), device=frames.device).tolist()
    return torch.stack(
        [
            picture[..., y : y + height, x : x + width, :]
            for picture, (y, x) in zip(padded, corners, strict=True)
        ]
    )


def cut_out(frames: Tensor, channels: str = "last") -> Tensor:
    """The same pictures with a black rectangle in each of the N, wholly inside: its sides are an
    eighth to a third of the picture's, at least a pixel.
    """
    if channels == "first":
        return cut_out(frames.movedim(-3, -1)).movedim(-1, -3)
    hidden = frames.clone()
    places = torch.rand(len(frames), 4, device=frames.device).tolist()
    for picture, (tall, wide, down, right) in zip(hidden, places, strict=True):
        top, bottom = _span(frames.shape[-3], tall, down)
        left, end = _span(frames.shape[-2], wide, right)
        picture[..., top:bottom, left:end, :] = 0
    return hidden


def _span(side: int, size: float, place: float) -> tuple[int, int]:
    """Begin and end of a cut on a side of so many pixels; `size` and `place` are in 0..1."""
    length = max(1, round(side * (SMALLEST_CUT + size * (LARGEST_CUT - SMALLEST_CUT))))
    begin = int(place * (side - length + 1))
    return begin, begin + length
