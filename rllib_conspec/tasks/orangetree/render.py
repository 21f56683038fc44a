"""Pictures for people: what the agent sees, enlarged, and beside it what it cannot see."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_conspec.tasks.orangetree import scene
from rllib_conspec.tasks.orangetree.game import View
from rllib_conspec.tasks.orangetree.layout import FLAT, FORWARDS, KINDS
from rllib_conspec.tasks.orangetree.scene import Thing
from rllib_conspec.tasks.orangetree.screen import SIZE

SCALE = 5
STRIP_PIXELS = 180
_MAP_PIXELS = 160
_INK = (235, 235, 235)
_PAPER = (28, 28, 32)


def draw(view: View, observation: np.ndarray) -> np.ndarray:
    """The observation and a strip with words and map, as uint8 ``[420, 600, 3]``."""
    size = SIZE * SCALE
    image = Image.new("RGB", (size + STRIP_PIXELS, size), _PAPER)
    image.paste(Image.fromarray(observation).resize((size, size), Image.NEAREST))
    pen = ImageDraw.Draw(image)
    title, small = ImageFont.load_default(18), ImageFont.load_default(14)
    x = size + 10
    pen.text((x, 12), view.stage.name, fill=_INK, font=title)
    pen.text((x, 40), f"step {view.step} of {view.last_step}", fill=_INK, font=small)
    pen.text((x, 84), "took", fill=_INK, font=title)
    taken = "nothing" if view.carried is None else f"a {KINDS[view.carried]}"
    pen.text((x, 110), taken, fill=_INK, font=small)
    _draw_map(pen, view, x, size - _MAP_PIXELS - 10)
    return np.asarray(image).copy()


def _draw_map(pen: ImageDraw.ImageDraw, view: View, left: int, top: int) -> None:
    """The room from above, north up."""
    room = view.stage.room
    scale = _MAP_PIXELS / 2 / max(room.half)
    middle = left + _MAP_PIXELS / 2, top + _MAP_PIXELS / 2

    def at(x: float, y: float) -> tuple[float, float]:
        return middle[0] + x * scale, middle[1] - y * scale

    west_north, east_south = at(-room.half[0], room.half[1]), at(room.half[0], -room.half[1])
    pen.rectangle((west_north, east_south), fill=room.floor, outline=room.wall, width=3)
    # The tree first: what lies under it is then seen.
    for thing in sorted(view.things, key=lambda thing: thing.row != scene.TREE):
        _draw_thing(pen, at(thing.x, thing.y), thing, scale)
    x, y = at(*view.xy)
    east, north = FORWARDS[view.heading]
    angle = math.degrees(math.atan2(-north, east))
    pen.pieslice((x - 14, y - 14, x + 14, y + 14), angle - 45, angle + 45, fill=(250, 250, 250))
    pen.ellipse((x - 4, y - 4, x + 4, y + 4), fill=(250, 250, 250), outline=_PAPER)


def _draw_thing(
    pen: ImageDraw.ImageDraw, place: tuple[float, float], thing: Thing, scale: float
) -> None:
    x, y = place
    if thing.row < len(KINDS):
        r, colour = 0.45 * scale, thing.colour
        if FLAT[thing.row]:
            pen.rectangle((x - r, y - r, x + r, y + r), fill=colour, outline=_PAPER)
            return
    elif thing.row == scene.TREE:
        r, colour = 1.1 * scale, scene.LEAVES
    elif thing.row == scene.ORANGE_TO_PICK:
        r, colour = 0.17 * scale, scene.ORANGE
    else:
        r, colour = 0.2 * scale, scene.APPLE
    pen.ellipse((x - r, y - r, x + r, y + r), fill=colour, outline=_PAPER)
