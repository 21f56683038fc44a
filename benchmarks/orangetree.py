"""How fast OrangeTree is: the world alone, without a player process.

The world: 8 games in this process on one core, random actions, whole episodes, so that every stage
counts as often as it is played; pictures and rules, best of 15 rounds.

Takes about 10 seconds. Expect `ms_per_frame:` of at most 1.2.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

ROUNDS = 15


def world(num_envs: int = 8) -> float:
    """Milliseconds per frame of the world alone."""
    envs = OrangeTreeVectorEnv(num_envs)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    steps = envs.max_episode_steps + 1  # with the step that begins the next episode
    times = []
    for _ in range(ROUNDS):
        actions = rng.integers(4, size=(steps, num_envs))
        start = time.perf_counter()
        for row in actions:
            envs.step(row)
        times.append((time.perf_counter() - start) / (steps * num_envs) * 1e3)
    best, middle = min(times), np.median(times)
    print(f"  world, {num_envs} games: {best:.2f} ms per frame, median {middle:.2f}", flush=True)
    return best


def main() -> None:
    figures = {"ms_per_frame": world()}
    for name, figure in figures.items():
        print(f"{name}: {figure:.3f}")


if __name__ == "__main__":
    main()
