"""Looking into algorithms: their learners and workers, what they are given, what they hold."""

import copy
import hashlib
import time
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
import torch

from rllib_conspec.algorithm.iteration import Iteration
from rllib_conspec.algorithm.report import fetched
from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.rewards import potential_reward, window_reward
from rllib_conspec.reward_models.conspec.scorer import episode_scores


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
VOLATILE |= {"outstanding", "pid", "hostname", "ip", "perf", "restore", "trial", "config"}


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
