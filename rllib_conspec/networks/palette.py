"""Pictures in other colours: every colour of a picture becomes another one, light and shade stay.

What a policy will meet is the same things in other paint. So the pixels of a picture are sorted by
their colour, whatever the light that falls on it, and each sort is painted anew in a colour drawn
from the whole cube, light and shade as they were. Functions of the colour alone do this less well:
curves for each channel keep the colours of different things tied to each other, and waves through
the colour cube, sin(W·rgb + b), give the shades of one thing different colours (docs/orangetree.md
compares them).
"""

from __future__ import annotations

import torch
from torch import Tensor

ANCHORS = 12  # pixels of a picture that its colours are sorted by
POOL = 256  # pixels that these are chosen from
ALIKE = 0.25  # anchors whose tones are nearer than this are of one colour
# Dark pixels have no clear hue: this much is added to the brightness that their hue is told by.
DIM = 0.15
SHADE = 0.7  # how much brightness counts in a tone; hue is in 0..1 for every channel
LIFT = 0.05  # added to brightness before it is compared, or black would be infinitely dark
# A new thing among known ones is as likely as all things being new. So in the first share of the
# pictures every sort keeps its colour with the second probability.
PARTLY, STAYS = 0.5, 0.7
PIXELS = 65_536  # painted at a time: all that is computed for them stays in a core's cache


def repaint(
    frames: Tensor,
    brightest: float = 255.0,
    channels: str = "last",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Raw pictures (0..brightest) [N, …, height, width, channels], each of the N in colours of its
    own; with `channels` first, [N, …, channels, height, width].

    A sequence [N, T, …] keeps its colours from step to step. Without a `generator`, draws from
    torch's global one, which learners seed for every update.
    """
    if channels == "first":
        return repaint(frames.movedim(-3, -1), brightest, generator=generator).movedim(-1, -3)
    pixels = frames.flatten(1, -2)  # [N, P, channels]
    anchors, paint = draw_palette(pixels, brightest, generator)
    toned = tones(anchors)
    offset = toned.square().sum(-1, keepdim=True).mul(-0.5)  # [N, K, 1]
    painted = torch.empty_like(pixels)
    rows = max(1, PIXELS // pixels.shape[1])
    for begin in range(0, len(pixels), rows):
        some = slice(begin, begin + rows)
        # Channels as planes: all that follows goes through memory in one run.
        light = pixels[some].mT.contiguous().to(anchors.dtype).mul_(1 / brightest)
        # The nearest anchor: |a − b|² is smallest where a·b − |b|²/2 is largest. `max` finds it in
        # a quarter of the time that `argmax` takes.
        near = torch.baddbmm(offset[some], toned[some], tones(light, dim=1)).max(1).indices
        paints = paint[some].mT
        colour = paints.gather(2, near[:, None].expand(-1, paints.shape[1], -1))
        colour *= light.mean(1, keepdim=True) + LIFT
        painted[some] = colour.clamp_(0, 1).mul_(brightest).to(frames.dtype).mT
    return painted.view(frames.shape)


def draw_palette(
    pixels: Tensor, brightest: float, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Anchors of N pictures [N, P, channels], and the new colour of what is nearest to each, for a
    brightness of 1: both [N, K, channels]. Anchors of one colour get one colour.
    """
    count, total, depth = pixels.shape
    draw = {"generator": generator, "device": pixels.device}
    some = torch.randint(total, (count, POOL, 1), **draw).expand(-1, -1, depth)
    pool = pixels.gather(1, some).to(torch.get_default_dtype()) * (1 / brightest)
    chosen = _of_every_colour(tones(pool), torch.rand(ANCHORS, count, POOL, **draw))
    anchors = pool.gather(1, chosen[..., None].expand(-1, -1, depth))
    toned = tones(anchors)
    # The first anchor of the same colour; `argmax` of what is true finds the first.
    first = (torch.cdist(toned, toned) < ALIKE).int().argmax(-1)[..., None].expand(-1, -1, depth)
    drawn = torch.rand(count, ANCHORS, depth + 1, **draw)
    # Of the whole cube, every brightness equally often: dark paint is as likely as light paint.
    colours = drawn[..., 1:] / drawn[..., 1:].amax(-1, keepdim=True) * drawn[..., :1]
    stays = torch.rand(count, 1, 1, **draw) < PARTLY
    stays = stays & (torch.rand(count, ANCHORS, 1, **draw) < STAYS)
    colours = torch.where(stays, anchors, colours)
    return anchors, colours.gather(1, first) / (
        anchors.gather(1, first).mean(-1, keepdim=True) + LIFT
    )


def _of_every_colour(toned: Tensor, chance: Tensor) -> Tensor:
    """Pixels of tones [N, P, channels + 1], one after the other of a colour that none before it
    has, the one with the highest chance [K, N, P]: [N, K]. When there is no such colour, of any.

    Drawn by area alone, a small thing would mostly get the paint of what is behind it.
    """
    apart = torch.full(toned.shape[:2], torch.inf, device=toned.device)
    row, chosen = torch.arange(len(toned), device=toned.device), []
    for drawn in chance:
        chosen.append((drawn + (apart > ALIKE)).argmax(1))
        distance = torch.linalg.vector_norm(toned - toned[row, chosen[-1], None], dim=-1)
        apart = torch.minimum(apart, distance)
    return torch.stack(chosen, 1)


def tones(colours: Tensor, dim: int = -1) -> Tensor:
    """What tells colours in 0..1 apart, whose channels are along `dim`: the hue, which is the same
    in any light, and, counting less, the brightness, behind the channels.
    """
    hue = colours / (colours.amax(dim, keepdim=True) + DIM)
    return torch.cat([hue, SHADE * colours.mean(dim, keepdim=True)], dim)
