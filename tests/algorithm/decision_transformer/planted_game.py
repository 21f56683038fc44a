"""A game whose every return can be asked for, and recordings of chance playing it."""

import gymnasium as gym
import numpy as np

from rllib_conspec import environments
from rllib_conspec.algorithm import DecisionTransformerConfig
from rllib_conspec.episodes import Episode
from rllib_conspec.recordings import Origin, Recording, save

STEPS = 6


class Coins(gym.Env):
    """Six steps; each pays 1 for action 1 and nothing for action 0. What is seen says nothing."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        self.t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.ones(2, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.ones(2, np.float32), float(action), self.t == STEPS, False, {}


def record(path, count=400):
    """Episodes of chance, of all returns."""
    rng = np.random.default_rng(0)
    facts = environments.look(Coins, {}, max_episode_steps=STEPS)
    episodes = []
    for _ in range(count):
        actions = rng.integers(2, size=STEPS)
        seen = np.ones((STEPS + 1, 2), np.float32)
        rewards = actions.astype(np.float32)
        episodes.append(Episode(seen, actions, rewards, success=bool(rewards.sum() > 3)).packed())
    origin = Origin.of(facts.plays, facts.version, facts.observation_space, facts.action_space)
    save(path, Recording(origin, "random", count * STEPS, tuple(episodes)))
    return str(path)


def coins_config(recordings, updates=30, **options):
    return (
        DecisionTransformerConfig()
        .environment(Coins)
        .episodes(max_steps=STEPS, per_batch=4)
        .decision_transformer(
            recordings=recordings,
            updates_per_iteration=updates,
            **{"context": 4, "blocks": 1} | options,
        )
        .rl_module(model_config={"encoder": "mlp", "encoder_dim": 32})
        .training(lr=3e-3)
        .debugging(seed=1)
    )
