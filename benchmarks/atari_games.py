"""Atari episodes to be learned from, and a policy without anything around it."""

from __future__ import annotations

import numpy as np
from runs import experiment

# isort: split
import torch
from gymnasium import spaces

from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.episodes import Episode
from rllib_conspec.tasks.atari.vector import STEPS, AtariColourVectorEnv

GAME = "AirRaid"  # the easiest to score in at random


def config() -> dict:
    """Delayed AirRaid, as tuned_examples/ has it."""
    return experiment("atari/airraid") | {"seed": 0}


def bare_policy(space: spaces.Box, actions: spaces.Discrete) -> EpisodePolicy:
    torch.manual_seed(0)
    sizes = {"encoder_dim": 256, "core_dim": 0}
    return EpisodePolicy(observation_space=space, action_space=actions, model_config=sizes)


def random_episodes(count: int, steps: int = STEPS) -> list[Episode]:
    """Whole episodes of random actions, `count` at a time."""
    env = AtariColourVectorEnv(count, GAME, delayed=True, max_episode_steps=steps)
    rng = np.random.default_rng(0)
    frames = np.empty((steps + 1, *env.observation_space.shape), np.uint8)
    frames[0], _ = env.reset(seed=0)
    length, scores = np.full(count, steps), np.zeros(count)
    running = np.ones(count, dtype=bool)
    for t in range(steps):
        frames[t + 1], rewards, over, _, _ = env.step(
            rng.integers(env.single_action_space.n, size=count)
        )
        ends = over & running
        length[ends], scores[ends] = t + 1, rewards[ends]
        running &= ~over
    episodes = []
    for e, n in enumerate(length):
        rewards = np.zeros(n, np.float32)
        rewards[-1] = scores[e]
        episodes.append(Episode(frames[: n + 1, e].copy(), np.zeros(n, np.int64), rewards))
    return episodes
