"""Episodes of a random policy in the key tasks, for the benchmarks."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from rllib_conspec.retrospection.memory import StoredEpisode


def random_episodes(keys: int, count: int, seed: int = 0) -> list[StoredEpisode]:
    """`count` whole episodes; the first half are called successes, which costs the same."""
    env = gym.make_vec(
        "rllib_conspec:MultiKeyToDoor-v0",
        num_envs=count,
        vectorization_mode="vector_entry_point",
        keys=keys,
    )
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    steps = [
        env.step(rng.integers(0, 4, count))[0].copy()
        for _ in range(env.unwrapped.max_episode_steps)
    ]
    frames = np.stack(steps, axis=1)
    return [StoredEpisode.of(frames[k], k < count // 2) for k in range(count)]


def lengthened(episodes: list[StoredEpisode], length: int) -> list[StoredEpisode]:
    """Episodes of `length` steps, made of the given ones end to end."""
    longer = []
    for k, episode in enumerate(episodes):
        parts = [episodes[(k + n) % len(episodes)].frames for n in range(length)]
        longer.append(StoredEpisode.of(np.concatenate(parts)[:length], episode.success))
    return longer
