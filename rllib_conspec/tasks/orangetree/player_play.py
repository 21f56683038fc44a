"""An episode to look at: ``orangetree-player --play``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from rllib_conspec.errors import UserError
from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.vector import ACTION_SPACE, OrangeTreeVectorEnv

COLUMNS, GAP, SCALE = 11, 4, 2  # of the strip
FRAME_MS = 160


def record(policy: str, variant: str, seed: int, out: str) -> None:
    """Play one episode and write it to ``out``: .gif with a map, or .png with all frames."""
    path = Path(out)
    if path.suffix not in (".gif", ".png"):
        raise UserError(f"--out must end in .gif or .png, not {out!r}")
    env = OrangeTreeVectorEnv(num_envs=1, variant=variant, render_mode="rgb_array")
    observations, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    seen, pictures, won, over = [observations[0]], [env.render()[0]], False, False
    while not over:
        chosen = script.actions(env) if policy == "script" else rng.integers(ACTION_SPACE.n, size=1)
        observations, rewards, terminated, *_ = env.step(chosen)
        over, won = bool(terminated[0]), bool(rewards[0] > 0)
        seen.append(observations[0])
        pictures.append(env.render()[0])
    try:
        _write_gif(pictures, path) if path.suffix == ".gif" else _strip(seen).save(path)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}") from error
    result = "picked the orange" if won else "did not pick the orange"
    print(f"{path}: {len(seen) - 1} steps, {result}")


def _write_gif(pictures: list[np.ndarray], path: Path) -> None:
    frames = [Image.fromarray(picture) for picture in pictures]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0)


def _strip(frames: list[np.ndarray]) -> Image.Image:
    """All frames in reading order."""
    side = frames[0].shape[0] * SCALE
    rows = -(-len(frames) // COLUMNS)
    step = side + GAP
    strip = Image.new("RGB", (COLUMNS * step - GAP, rows * step - GAP), (255, 255, 255))
    for i, frame in enumerate(frames):
        picture = Image.fromarray(frame).resize((side, side), Image.NEAREST)
        strip.paste(picture, (i % COLUMNS * step, i // COLUMNS * step))
    return strip
