"""Draws docs/images/keys.png: the rooms of the 4-key game, played by the scripted solution.

Run it from the repository: ``python docs/images/make_keys.py``. It takes two seconds.
Top row: the agent enters. Middle: the key is taken (waiting room: some steps later, exit: the
agent leaves). Bottom: the middle row as the agent sees it, 5x5 pixels.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image

from rllib_conspec.tasks.keys.script import optimal_actions

TILE = (200, 150)
GAP = 6
ROOMS = ("key room 1", "waiting room 1", "key room 2", "key room 3", "key room 4", "exit")
WAITED = 13


def play() -> tuple[dict[str, np.ndarray], dict[str, tuple[np.ndarray, np.ndarray]]]:
    """First picture of every room, and picture with observation of its event."""
    env = gym.make("rllib_conspec:MultiKeyToDoor-v0", keys=4, render_mode="rgb_array")
    env.reset(seed=3)
    entered = {"key room 1": env.render()}
    events = {}
    for action in optimal_actions(keys=4):
        observation, _, terminated, _, info = env.step(action)
        view = env.unwrapped.game.view(0)
        name = view.stage.name
        entered.setdefault(name, env.render())
        waited = view.stage.waiting and view.step % 60 == WAITED + 10
        if waited or terminated or "key_taken" in info:
            events[name] = (env.render(), observation)
    env.close()
    return entered, events


def enlarge(observation: np.ndarray) -> Image.Image:
    """An observation as a square in the middle of a tile."""
    tile = Image.new("RGB", TILE, "white")
    square = Image.fromarray(observation).resize((TILE[1], TILE[1]), Image.NEAREST)
    tile.paste(square, ((TILE[0] - TILE[1]) // 2, 0))
    return tile


def main() -> None:
    entered, events = play()
    width, height = TILE[0] + GAP, TILE[1] + GAP
    sheet = Image.new("RGB", (len(ROOMS) * width - GAP, 3 * height - GAP), "white")
    for column, name in enumerate(ROOMS):
        picture, observation = events[name]
        tiles = [Image.fromarray(p).resize(TILE, Image.LANCZOS) for p in (entered[name], picture)]
        for row, tile in enumerate([*tiles, enlarge(observation)]):
            sheet.paste(tile, (column * width, row * height))
    target = Path(__file__).with_name("keys.png")
    sheet.save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
