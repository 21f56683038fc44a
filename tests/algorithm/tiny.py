"""Small environments, configurations and reward models that the tests of this folder share."""

import threading
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import RewardModel

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


RISING = "tiny:Rising"


APART = "tiny:Apart"


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


# --- environments ---------------------------------------------------------------------------------


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


# --- success functions ----------------------------------------------------------------------------


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


# --- reward models --------------------------------------------------------------------------------


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


class Rising(Constant):
    """Pays the environment's own rewards once more for every update so far."""

    def reward(self, episodes):
        return [self.loaded * e.rewards for e in episodes]


class Apart(Constant):
    """Its pay has a value stream of its own."""

    @classmethod
    def own_stream(cls, options):
        return 0.5


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
