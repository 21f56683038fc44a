"""Pictures for people: the room with drawn objects, and beside it what the agent cannot see."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_conspec.tasks.keys.layout import CELLS, NOWHERE, SIDE, Stage
from rllib_conspec.tasks.keys.picture import (
    APPLE,
    KEY_COLOURS,
    WALL,
    door_colour,
    floor_colour,
)

CELL_PIXELS = 84
STRIP_PIXELS = 140
_INK = (235, 235, 235)
_PAPER = (28, 28, 32)
_AGENT = (250, 250, 250)


@dataclass(frozen=True)
class View:
    """The full state of one game; ``held`` lists the keys in the agent's hand."""

    stage: Stage
    step: int
    last_step: int
    cell: int
    held: tuple[int, ...]
    key_lies: bool
    door_open: bool
    apples: tuple[int, ...]


def draw(view: View) -> np.ndarray:
    """Draw a view as uint8 ``[420, 560, 3]``."""
    size = SIDE * CELL_PIXELS
    image = Image.new("RGB", (size + STRIP_PIXELS, size), _PAPER)
    pen = ImageDraw.Draw(image)
    room = view.stage.room
    floor = tuple(channel + 26 for channel in floor_colour(view.stage))
    for cell in range(CELLS):
        colour = WALL if cell in room.walls else floor
        pen.rectangle(_box(cell, 1), fill=colour)
    if room.door != NOWHERE:
        _draw_door(pen, room.door, door_colour(view.stage), view.door_open, floor)
    if view.key_lies:
        _draw_key(pen, _centre(room.key), 1.0, KEY_COLOURS[view.stage.key])
    for cell in view.apples:
        _draw_apple(pen, cell)
    _draw_agent(pen, view.cell)
    _draw_strip(pen, view, size)
    return np.asarray(image).copy()


def _box(cell: int, margin: int) -> tuple[int, int, int, int]:
    top, left = cell // SIDE * CELL_PIXELS, cell % SIDE * CELL_PIXELS
    far = CELL_PIXELS - 1 - margin
    return left + margin, top + margin, left + far, top + far


def _centre(cell: int) -> tuple[int, int]:
    half = CELL_PIXELS // 2
    return cell % SIDE * CELL_PIXELS + half, cell // SIDE * CELL_PIXELS + half


def _draw_key(pen: ImageDraw.ImageDraw, at: tuple[int, int], scale: float, colour) -> None:
    x, y = at

    def px(value: float) -> int:
        return round(value * scale)

    ring = (x - px(28), y - px(14), x, y + px(14))
    pen.ellipse(ring, outline=colour, width=max(2, px(7)))
    pen.rectangle((x, y - px(3), x + px(28), y + px(3)), fill=colour)
    for tooth in (14, 23):
        pen.rectangle((x + px(tooth), y, x + px(tooth + 5), y + px(14)), fill=colour)


def _draw_door(pen: ImageDraw.ImageDraw, cell: int, colour, is_open: bool, floor) -> None:
    left, top, right, bottom = _box(cell, 1)
    pen.rectangle((left, top, right, bottom), fill=colour)
    inner = (left + 10, top + 10, right - 10, bottom)
    if is_open:
        pen.rectangle(inner, fill=floor)
        return
    pen.rectangle(inner, outline=_PAPER, width=3)
    x, y = _centre(cell)
    pen.ellipse((x - 7, y - 9, x + 7, y + 5), fill=_PAPER)
    pen.polygon(((x - 3, y), (x + 3, y), (x + 7, y + 20), (x - 7, y + 20)), fill=_PAPER)


def _draw_apple(pen: ImageDraw.ImageDraw, cell: int) -> None:
    x, y = _centre(cell)
    red, green, blue = APPLE
    pen.ellipse((x - 18, y - 14, x + 18, y + 20), fill=(red + 40, green + 40, blue + 40))
    pen.line((x, y - 12, x + 5, y - 24), fill=(130, 90, 50), width=4)


def _draw_agent(pen: ImageDraw.ImageDraw, cell: int) -> None:
    x, y = _centre(cell)
    pen.ellipse((x - 13, y - 32, x + 13, y - 6), fill=_AGENT)
    pen.pieslice((x - 26, y - 4, x + 26, y + 64), 180, 360, fill=_AGENT)


def _draw_strip(pen: ImageDraw.ImageDraw, view: View, left: int) -> None:
    title, small = ImageFont.load_default(18), ImageFont.load_default(14)
    x = left + 12
    for line, word in enumerate(view.stage.name.rsplit(" ", 1)):
        pen.text((x, 12 + 22 * line), word, fill=_INK, font=title)
    pen.text((x, 66), f"step {view.step} of {view.last_step}", fill=_INK, font=small)
    pen.text((x, 112), "holds", fill=_INK, font=title)
    if not view.held:
        pen.text((x, 142), "nothing", fill=(150, 150, 150), font=small)
    for row, key in enumerate(view.held):
        _draw_key(pen, (x + 32, 160 + 48 * row), 1.0, KEY_COLOURS[key])
