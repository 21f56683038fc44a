"""Small environments, configurations and reward models that the tests of this folder share."""

import copy
import hashlib
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.iteration import Iteration
from rllib_conspec.algorithm.report import fetched
from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.episodes import Episode
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import RewardModel
from rllib_conspec.reward_models.conspec.rewards import potential_reward, window_reward
from rllib_conspec.reward_models.conspec.scorer import episode_scores

KEYS = "rllib_conspec:MultiKeyToDoor-v0"
MODEL = {"encoder": "conv", "encoder_dim": 8, "core_dim": 8}
# Learns from the first batch on; some prototype meets this low criterion within a few iterations.
EAGER = {
    "num_prototypes": 3,
    "encoder_dim": 8,
    "projection_dim": 8,
    "memory_size": 4,
    "memory_batch": 4,
    "min_successes": 1,
    "threshold": 0.05,
    "freeze_after": 1,
}
CONSTANT = "tiny:Constant"
PATIENT = "tiny:Patient"


def keys_config(
    config_class=ConSpecConfig, *, runners=0, envs=4, seed=1, success="top_k", **conspec
):
    """One key, batches of 8 episodes, networks of 8 units."""
    config = (
        config_class()
        .rewards(preset="paper", success=success)
        .environment(KEYS, env_config={"keys": 1})
        .episodes(per_batch=8, per_minibatch=4)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=envs)
        .rl_module(model_config=dict(MODEL))
        .debugging(seed=seed)
    )
    return config.conspec(**(EAGER | conspec)) if config_class is ConSpecConfig else config


def plain_config(*, success="sparse", **kwargs):
    return keys_config(WholeEpisodePPOConfig, success=success, **kwargs)


def clock_config(config_class=ConSpecConfig, *, runners=0, core_dim=8, env=None, **env_config):
    """Episodes of very different lengths."""
    config = (
        config_class()
        .rewards(preset="paper", success="top_k" if config_class is ConSpecConfig else "sparse")
        .environment(env or Clock, env_config=env_config)
        .episodes(per_batch=8, per_minibatch=2, max_steps=20)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=3)
        .rl_module(model_config={"encoder": "mlp", "encoder_dim": 8, "core_dim": core_dim})
        .debugging(seed=1)
    )
    if config_class is ConSpecConfig:
        config.conspec(**EAGER)
    return config


# --- looking into algorithms --------------------------------------------------------------------


def on_learners(algo, function):
    """What `function` gives on every learner."""
    return [result.get() for result in algo.learner_group.foreach_learner(function)]


def on_workers(algo, function):
    """{worker index: result} of all healthy remote workers."""
    found = algo.env_runner_group.foreach_env_runner(
        lambda runner: (runner.worker_index, function(runner)), local_env_runner=False
    )
    return dict(found)


def learner_of(algo):
    """The learner of an algorithm that has it in this process."""
    (learner,) = on_learners(algo, lambda learner: learner)
    return learner


def reward_learner(algo):
    """The learner's side of ConSpec, of an algorithm with a local learner."""
    return learner_of(algo).reward_model.models["conspec"].learner


def version_of(algo):
    """Updates of the reward models so far."""
    return learner_of(algo).reward_model.version


def make_prototypes_pay(algo):
    """Every prototype pays from now on, as if all had met the criterion: by a restored state."""
    state = algo.get_state()
    state["learner_group"]["learner"]["reward_model"]["models"]["conspec"]["met"][:] = True
    algo.set_state(state)


def episode_of(episode):
    """RLlib's episode as reward models see it."""
    return Episode(episode.get_observations(), episode.get_actions(), episode.get_rewards())


def learners_own_reward(model, gamma, episode, intrinsic="window"):
    """What the learner's own prototypes would pay in an episode: no snapshot, no scorer."""
    scores = episode_scores(model.model, [episode_of(episode)])[0][model.met].astype(np.float64)
    o = model.options
    shared = {"scale": o.intrinsic_coeff, "threshold": o.threshold}
    if intrinsic == "potential":
        return potential_reward(scores, gamma=gamma, **shared)
    return window_reward(scores, window=o.window, remove_repeats=o.form != "paper", **shared)


def trained_on(algo):
    """One iteration: (episodes that the RL update got, result)."""
    given, original = [], algo.learner_group.update

    def spy(*args, training_data, **kwargs):
        for share in (s for shares in training_data.shares for s in shares):
            # A copy: the learner lengthens and renames its own.
            given.extend(copy.deepcopy(fetched(share).rl))
        return original(*args, training_data=training_data, **kwargs)

    with patch.object(algo.learner_group, "update", spy):
        result = algo.train()
    return given, result


@contextmanager
def reports_seen():
    """Lists of the workers' reports: one list for every training step in the block."""
    seen, original = [], Iteration.add

    def add(self, reports):
        seen.append(list(reports))
        original(self, seen[-1])

    with patch.object(Iteration, "add", add):
        yield seen


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


def differences(expected, got):
    """{name: (expected, got)} of what is not the same."""
    names = expected.keys() | got.keys()
    pairs = {name: (expected.get(name), got.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def memories(algo):
    """What ConSpec's memories hold, with those of frozen prototypes."""
    memory = reward_learner(algo).memory
    keep = [group for i in (None, *sorted(memory.frozen)) for group in memory.examples(i)]
    return {
        "episodes": [[e.frames.tobytes() for e in group] for group in keep],
        "counts": memory.count,
        "version": version_of(algo),
    }


def states(algo):
    """All that the reward models hold, on every learner: by its path, as text."""
    return [flat(state) for state in on_learners(algo, lambda lrn: lrn.reward_model.get_state())]


def flat(value, path=""):
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, part in items for k, v in flat(part, f"{path}/{key}").items()}
    if isinstance(value, np.ndarray | torch.Tensor):
        array = np.asarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {path: f"{array.dtype} {array.shape} {digest}"}
    return {path: repr(value)}


# --- environments -------------------------------------------------------------------------------


class Clock(gym.Env):
    """Counts steps until a random end; keeps a log of all that happened, to compare with.

    Observations: number of the episode since the last seed, step, length of the episode, and the
    last action's first number. Episodes of odd length are truncated, others terminated. With
    `drop_at`, episodes longer than that break down at this step. It strikes (`critical_events`) at
    every fifth step.
    """

    critical_events = ("strikes",)

    def __init__(self, config=None, **options):
        options = dict(config or {}) | options
        self.drop_at = options.get("drop_at")
        self.lengths = options.get("lengths", (1, 2, 3, 20))
        self.nested_info = options.get("nested_info", False)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = (
            gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
            if options.get("continuous")
            else gym.spaces.Discrete(3)
        )
        self.raise_at = options.get("raise_at")
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
        if t % 5 == 0:
            info["strikes"] = t // 5
        if t == self.drop_at and not done:
            entry["truncated"] = info["dropped"] = True
        return (
            entry["observations"][-1],
            entry["rewards"][-1],
            entry["terminated"],
            entry["truncated"],
            info,
        )


class Ageless(Clock):
    """Never ends by itself, and never tells how long its episodes are."""

    def __init__(self, config=None, **options):
        super().__init__(config, **options, lengths=(10**9,))


class Parts(Clock):
    """The same with its observation in two parts."""

    def __init__(self, config=None, **options):
        super().__init__(config, **options)
        self.observation_space = gym.spaces.Dict(
            {name: gym.spaces.Box(-np.inf, np.inf, (2,), np.float32) for name in ("face", "works")}
        )

    def _observe(self, action=0.0):
        whole = super()._observe(action)
        return {"face": whole[:2], "works": whole[2:]}


class LostMarbles(RuntimeError):
    """An error that only a test can raise."""


# --- success functions --------------------------------------------------------------------------


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


# --- reward models ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConstantOptions(Options):
    step: float = option(0.0, "paid for every step")
    first: float = option(0.0, "paid besides for the first step of an episode")
    broken: bool = option(False, "raises in update")


class Constant(RewardModel):
    """Pays by the clock from the first snapshot on, and keeps what it was given."""

    Options = ConstantOptions

    def __init__(self, options, setting):
        super().__init__(options, setting)
        self.given, self.updates, self.loaded = [], 0, 0

    def update(self, episodes):
        if self.options.broken:
            raise LostMarbles("cannot learn")
        self.given = [episode for _, episode in episodes]
        self.updates += 1
        return {"episodes": len(episodes), "nested": {"updates": self.updates}}

    def hints(self):
        return ["pays whatever happens"]

    def snapshot(self):
        return self.updates

    def get_state(self):
        return {"updates": self.updates}

    def set_state(self, state):
        self.updates = state["updates"]

    def load(self, snapshot):
        self.loaded = snapshot

    def reward(self, episodes):
        paid = [
            np.full(len(e), self.options.step * (self.loaded > 0), np.float32) for e in episodes
        ]
        for array in paid:
            array[0] += self.options.first * (self.loaded > 0)
        return paid


class Patient(Constant):
    """Learns only when it is let, by whoever is in the same process."""

    let = threading.Event()
    begun = threading.Event()

    def update(self, episodes):
        Patient.begun.set()
        assert Patient.let.wait(200)
        return super().update(episodes)


class States(RewardModel):
    """Pays nothing, and counts different observations."""

    def __init__(self, options, setting):
        super().__init__(options, setting)
        self.seen = set()

    def update(self, episodes):
        for _, episode in episodes:
            self.seen.update(episode.digests[1:].tolist())
        return {"seen": len(self.seen)}

    def snapshot(self):
        return None

    def load(self, snapshot):
        pass

    def reward(self, episodes):
        return [np.zeros(len(e), np.float32) for e in episodes]


# --- auxiliary losses -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PullOptions(Options):
    weight: float = option(1.0, "of the loss", min=0.0)


class Pull(AuxiliaryLoss):
    """Draws a parameter of its own to the mean value, and counts gradient steps."""

    Options = PullOptions

    def __init__(self, options, encoder):
        super().__init__(options, encoder)
        self.encoder = (encoder,)
        self.own = nn.Parameter(torch.tensor(100.0))
        self.register_buffer("steps", torch.zeros(()))

    def loss(self, batch):
        return self.options.weight * (self.own - batch.mean(batch.values)) ** 2

    def after_step(self):
        self.steps += 1
