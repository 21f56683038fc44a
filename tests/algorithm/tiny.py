"""Small environments, configurations and success functions that the tests of this folder share."""

import copy
import time

import gymnasium as gym
import numpy as np
import pytest

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.rewards import potential_reward, window_reward
from rllib_conspec.retrospection.scorer import episode_scores

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


def learners_own_reward(model, gamma, episode, intrinsic="window"):
    """What the learner's own prototypes would pay in an episode: no snapshot, no scorer."""
    stored = StoredEpisode.of(episode.get_observations()[1:], False)
    scores = episode_scores(model.model, [stored])[0][model.met].astype(np.float64)
    o = model.options
    shared = {"scale": o.intrinsic_coeff * o.task_reward, "threshold": o.threshold}
    if intrinsic == "potential":
        return potential_reward(scores, gamma=gamma, **shared)
    return window_reward(scores, window=o.window, remove_repeats=o.remove_repeats, **shared)


def trained_on(algo):
    """One iteration: (episodes that the RL update got, result)."""
    given, original = [], algo.learner_group.update

    def spy(*args, training_data, **kwargs):
        # A copy: the learner lengthens and renames its own.
        given.extend(copy.deepcopy(training_data.episodes))
        return original(*args, training_data=training_data, **kwargs)

    algo.learner_group.update = spy
    try:
        result = algo.train()
    finally:
        algo.learner_group.update = original
    return given, result


def train_until_error(algo, expected, limit=60.0):
    start = time.monotonic()
    with pytest.raises(expected) as caught:
        for _ in range(20):
            algo.train()
    assert time.monotonic() - start < limit
    return caught.value


# Words in the names of times, of process identities and of counters that begin anew on purpose.
VOLATILE = {
    "time",
    "timer",
    "timers",
    "timestamp",
    "seconds",
    "sec",
    "throughput",
    "date",
    "duration",
}
VOLATILE |= {"pid", "hostname", "ip", "perf", "restore", "trial", "config"}


def comparable(result, prefix=""):
    """All numbers of a result that must not depend on when and where it was computed."""
    found = {}
    for key, value in result.items():
        name = f"{prefix}{key}"
        if VOLATILE & set(str(key).split("_")):
            continue
        if isinstance(value, dict):
            found |= comparable(value, f"{name}/")
        elif isinstance(value, (int, float, np.number)):
            found[name] = repr(float(value))
    return found


def memories(algo):
    """Everything that the reward model keeps, in a form that compares by value."""
    model = reward_learner(algo)
    keep = [model.successes, model.failures]
    for i in sorted(model.exemplars):
        keep += [model.exemplars[i].successes, model.exemplars[i].failures]
    return {
        "episodes": [[e.frames.tobytes() for e in group] for group in keep],
        "counts": (len(model.successes), len(model.failures)),
        "exemplars": sorted(model.exemplars),
        "met": model.met.tolist(),
        "streak": model.streak.tolist(),
        "version": model.version,
        "weights": {k: v.tolist() for k, v in model.model.state_dict().items()},
        "optimizer": [
            {k: v.tolist() for k, v in state.items()} for state in model.optimizer.state.values()
        ],
    }


class Clock(gym.Env):
    """Counts steps until a random end; keeps a log of all that happened, to compare with.

    Observations: number of the episode since the last seed, step, length of the episode, and the
    last action's first number. Episodes of odd length are truncated, others terminated. With
    `drop_at`, episodes longer than that break down at this step.
    """

    def __init__(
        self,
        config=None,
        *,
        lengths=(1, 2, 3, 20),
        continuous=False,
        nested_info=False,
        drop_at=None,
    ):
        config = dict(config or {})
        self.drop_at = config.get("drop_at", drop_at)
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
        if t == self.drop_at and not done:
            entry["truncated"] = info["dropped"] = True
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
