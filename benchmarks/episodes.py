"""Episodes of a random policy in the key tasks, for the benchmarks."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from rllib_conspec.episodes import Episode


def random_episodes(keys: int, count: int, seed: int = 0) -> list[Episode]:
    """`count` whole episodes; the first half are called successes, which costs the same."""
    env = gym.make_vec(
        "rllib_conspec:MultiKeyToDoor-v0",
        num_envs=count,
        vectorization_mode="vector_entry_point",
        keys=keys,
    )
    rng = np.random.default_rng(seed)
    observations = [env.reset(seed=seed)[0].copy()]
    for _ in range(env.unwrapped.max_episode_steps):
        observations.append(env.step(rng.integers(0, 4, count))[0].copy())
    played = np.stack(observations, axis=1)
    return [of_observations(played[k], k < count // 2) for k in range(count)]


def of_observations(observations: np.ndarray, success: bool) -> Episode:
    """An episode [T + 1, *shape] in which only what was seen matters."""
    steps = np.zeros(len(observations) - 1)
    return Episode(observations, steps.astype(int), steps, success=success)


def lengthened(episodes: list[Episode], length: int) -> list[Episode]:
    """Episodes of `length` steps, made of the given ones end to end."""
    longer = []
    for k, episode in enumerate(episodes):
        parts = [episodes[(k + n) % len(episodes)].frames for n in range(length)]
        observations = np.concatenate([episode.observations[:1], *parts])[: length + 1]
        longer.append(of_observations(observations, episode.success))
    return longer
