"""Small environments, configurations and success functions that the tests of this folder share."""

import time

import gymnasium as gym
import numpy as np

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig

KEYS = "rllib_conspec:MultiKeyToDoor-v0"
MODEL = {"encoder": "conv", "encoder_dim": 8, "gru_dim": 8}
# Learns from the first batch on; some prototype meets this low criterion within a few iterations.
EAGER = {
    "num_prototypes": 3,
    "encoder_dim": 8,
    "projection_dim": 8,
    "success": "top_k",
    "memory_size": 4,
    "memory_batch": 4,
    "min_successes": 1,
    "threshold": 0.05,
    "freeze_after": 1,
}


def keys_config(config_class=ConSpecConfig, *, runners=0, envs=4, seed=1, **conspec):
    """One key, batches of 8 episodes, networks of 8 units."""
    config = (
        config_class()
        .environment(KEYS, env_config={"keys": 1})
        .episodes(per_batch=8, per_minibatch=4)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=envs)
        .rl_module(model_config=dict(MODEL))
        .debugging(seed=seed)
    )
    return config.conspec(**(EAGER | conspec)) if config_class is ConSpecConfig else config


def plain_config(**kwargs):
    return keys_config(WholeEpisodePPOConfig, **kwargs)


def clock_config(config_class=ConSpecConfig, *, runners=0, gru_dim=8, **env_config):
    """Episodes of very different lengths."""
    config = (
        config_class()
        .environment(Clock, env_config=env_config)
        .episodes(per_batch=8, per_minibatch=2, max_steps=20)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=3)
        .rl_module(model_config={"encoder": "mlp", "encoder_dim": 8, "gru_dim": gru_dim})
        .debugging(seed=1)
    )
    if config_class is ConSpecConfig:
        config.conspec(**(EAGER | {"encoder": "mlp"}))
    return config


def reward_learner(algo):
    """The learner's side of the reward model, of an algorithm with a local learner."""
    return algo.learner_group._learner.reward_model


def make_prototypes_pay(algo):
    """Every prototype pays from now on, as if all had met the criterion."""
    reward_learner(algo).met[:] = True
    algo._broadcast()


class Clock(gym.Env):
    """Counts steps until a random end; keeps a log of all that happened, to compare with.

    Observations: number of the episode since the last seed, step, length of the episode, and the
    last action's first number. Episodes of odd length are truncated, others terminated.
    """

    def __init__(self, config=None, *, lengths=(1, 2, 3, 20), continuous=False, nested_info=False):
        config = dict(config or {})
        self.lengths = config.get("lengths", lengths)
        self.nested_info = config.get("nested_info", nested_info)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = (
            gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
            if config.get("continuous", continuous)
            else gym.spaces.Discrete(3)
        )
        self.raise_at = config.get("raise_at")
        self.slow = config.get("slow", 0.0)
        self.log = []
        self.calls = self.number = 0

    def _observe(self, action=0.0):
        t = len(self.log[-1]["actions"])
        return np.array([self.number, t, self.length, action], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0 if seed is not None else self.number + 1
        self.length = int(self.np_random.choice(self.lengths))
        entry = {"start": self.calls, "actions": [], "rewards": [], "observations": []}
        self.log.append(entry)
        self.calls += 1
        entry["observations"].append(self._observe())
        return entry["observations"][0], {}

    def step(self, action):
        self.calls += 1
        if self.raise_at is not None and self.calls > self.raise_at:
            raise LostMarbles(f"the clock broke at call {self.calls}")
        time.sleep(self.slow)
        entry = self.log[-1]
        entry["actions"].append(action)
        t = len(entry["actions"])
        entry["observations"].append(self._observe(float(np.ravel(action)[0])))
        entry["rewards"].append(self.number * 100.0 + t)
        done, odd = t == self.length, self.length % 2 == 1
        entry["terminated"], entry["truncated"] = done and not odd, done and odd
        info = {"is_success": self.length > 2} if done else {}
        if self.nested_info:
            info["episode"] = {"l": t}
        return (
            entry["observations"][-1],
            entry["rewards"][-1],
            entry["terminated"],
            entry["truncated"],
            info,
        )


class LostMarbles(RuntimeError):
    """An error that only a test can raise."""


def reached_fifty(episode):
    """A user's own success function: an episode of at least 50 steps."""
    return len(episode.rewards) >= 50


def good(episode):
    """About half of all random episodes: 18 steps of CartPole, or -6 a step in Pendulum."""
    if (episode.rewards > 0).all():
        return len(episode.rewards) >= 18
    return float(episode.rewards.mean()) > -6.0


def broken_success(episode):
    raise LostMarbles("no idea what success is")
