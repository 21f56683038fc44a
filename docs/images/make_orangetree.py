"""Draws docs/images/orangetree_stages.png: the stages of OrangeTree in all variants, every object.

Run it from the repository: ``python docs/images/make_orangetree.py``. It takes two seconds.
Everything is what the agent sees, 84x84 pixels, twice as large. Above: one episode per column,
played by the scripted policy, the same in each variant but for colours. Below: every kind in every
colour.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.backdrop import Backdrop
from rllib_conspec.tasks.orangetree.camera import Camera
from rllib_conspec.tasks.orangetree.layout import (
    BALL,
    BLACK,
    BOX,
    COLOURS,
    JACK,
    KINDS,
    TABLE,
    VARIANTS,
    stages,
)
from rllib_conspec.tasks.orangetree.scene import Thing
from rllib_conspec.tasks.orangetree.screen import SIZE
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

TILE = 2 * SIZE
GAP = 6
LEFT, TOP = 74, 44
# What each column shows: a moment of the episode with this seed, in which the flat object is taken
# or the other one.
COLUMNS = {
    "1: box, ball": ("entered", 626, True),
    "1: table, jack": ("entered", 33, True),
    "takes the table": ("taken", 203, True),
    "takes the jack": ("taken", 303, False),
    "2: waiting room": ("waiting", 403, True),
    "3: table at the tree": ("tree", 501, True),
    "3: ball at the tree": ("tree", 607, False),
    "picks the orange": ("picked", 616, True),
}


def episode(variant: str, seed: int, flat: bool) -> dict[str, np.ndarray]:
    """Frames of a scripted episode by moment."""
    envs = OrangeTreeVectorEnv(1, variant=variant)
    frames = {"entered": envs.reset(seed=seed)[0][0]}
    over = False
    while not over:
        observations, _, terminated, _, infos = envs.step(script.actions(envs, flat))
        over = bool(terminated[0])
        if "flat_taken" in infos or "other_taken" in infos:
            frames["taken"] = observations[0]
        if "orange_picked" in infos:
            frames["picked"] = observations[0]
        step = envs.view(0).step
        if step == 15:
            frames["waiting"] = observations[0]
        if step == 55:
            frames["tree"] = observations[0]
    return frames


def object_frames(kind: int) -> list[np.ndarray]:
    """One kind in every colour, and black."""
    camera, backdrop = Camera(), Backdrop(stages()[0].room)
    frames = []
    for turned, colour in enumerate([*COLOURS.values(), BLACK]):
        frame = np.empty((SIZE, SIZE, 3), np.uint8)
        thing = Thing(kind, 0.0, 0.2, turned, colour)
        camera.take(backdrop, np.array([0.0, -1.8]), 0, False, [thing], frame)
        frames.append(frame)
    return frames


class Sheet:
    """A table of frames with names above the columns and before the rows."""

    def __init__(self, columns: list[str], rows: list[str]):
        width = LEFT + len(columns) * (TILE + GAP)
        height = TOP + len(rows) * (TILE + GAP)
        self.image = Image.new("RGB", (width, height), "white")
        pen = ImageDraw.Draw(self.image)
        font = ImageFont.load_default(17)
        for number, name in enumerate(columns):
            pen.text((self._at(number, 0)[0] + TILE // 2, 30), name, "black", font, "mm")
        for number, name in enumerate(rows):
            pen.text((LEFT - 10, self._at(0, number)[1] + TILE // 2), name, "black", font, "rm")

    @staticmethod
    def _at(column: int, row: int) -> tuple[int, int]:
        return LEFT + column * (TILE + GAP), TOP + row * (TILE + GAP)

    def put(self, column: int, row: int, frame: np.ndarray) -> None:
        picture = Image.fromarray(frame).resize((TILE, TILE), Image.NEAREST)
        self.image.paste(picture, self._at(column, row))


def stages_sheet() -> Image.Image:
    sheet = Sheet(list(COLUMNS), list(VARIANTS))
    for column, (moment, seed, flat) in enumerate(COLUMNS.values()):
        for row, variant in enumerate(VARIANTS):
            sheet.put(column, row, episode(variant, seed, flat)[moment])
    return sheet.image


def objects_sheet() -> Image.Image:
    sheet = Sheet([*COLOURS, "black"], list(KINDS))
    for row, kind in enumerate((BOX, TABLE, BALL, JACK)):
        for column, frame in enumerate(object_frames(kind)):
            sheet.put(column, row, frame)
    return sheet.image


def main() -> None:
    upper, lower = stages_sheet(), objects_sheet()
    picture = Image.new("RGB", (upper.width, upper.height + lower.height), "white")
    picture.paste(upper, (0, 0))
    picture.paste(lower, (0, upper.height))
    target = Path(__file__).with_name("orangetree_stages.png")
    picture.save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
