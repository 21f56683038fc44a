"""Remote workers that play several batches in one go, while nothing is learned.

Workers take seconds to start: tests share algorithms where they can, in the order of this file.
"""

import copy
import os
import signal
import time
from contextlib import contextmanager
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import pytest
import torch
from inside import comparable, differences, learner_of, on_workers, reports_seen
from ray.rllib.core.columns import Columns
from tiny import CONSTANT

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.report import fetched

ROUND = 4  # batches


class Lottery(gym.Env):
    """Pays in few episodes, by luck alone. Episodes last one to six steps."""

    def __init__(self, config=None):
        self.chance = (config or {}).get("chance", 0.0)
        self.observation_space = gym.spaces.Box(0.0, 6.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, 7))
        self.wins = self.np_random.random() < self.chance
        return np.array([self.left, self.np_random.random()], np.float32), {}

    def step(self, action):
        self.left -= 1
        seen = np.array([self.left, self.np_random.random()], np.float32)
        return seen, float(self.wins and self.left == 0), self.left == 0, False, {}


def lottery(chance=0.0, workers=2, **models):
    """Batches of 8 episodes on workers that have room for a round."""
    return (
        WholeEpisodePPOConfig()
        .rewards(models=models, success="sparse")
        .environment(Lottery, env_config={"chance": chance})
        .episodes(per_batch=8, per_minibatch=4, max_steps=6)
        .env_runners(num_env_runners=workers, num_envs_per_env_runner=8 * ROUND // workers)
        .env_runners(num_cpus_per_env_runner=0.5)  # up to eight workers at a time
        .rl_module(model_config={"encoder": "mlp", "encoder_dim": 8, "core_dim": 0})
        .training(lr=0.05)
        .fault_tolerance(delay_between_env_runner_restarts_s=1.0)
        .debugging(seed=1)
    )


@pytest.fixture(scope="module")
def unpaid(ray_local):
    """Nobody ever wins."""
    algo = lottery().build_algo()
    yield algo
    algo.stop()


@pytest.fixture(scope="module")
def twins(ray_local):
    """Two of the same seed; the second one's workers are asked through gatherers. Some batches are
    paid and learned from.
    """
    algos = [lottery(chance=0.04).build_algo() for _ in range(2)]
    algos[1]._workers._most = 1
    yield algos
    for algo in algos:
        algo.stop()


@contextmanager
def rounds_asked(algo):
    """The rounds that workers are asked for in the block."""
    asked, original = [], algo._request

    def request(round_):
        asked.append(round_)
        return original(round_)

    with patch.object(algo, "_request", request):
        yield asked


@contextmanager
def batches_taken(algo):
    """What every iteration in the block was given."""
    taken, original = [], algo._stock.take

    def take():
        taken.append(original())
        return taken[-1]

    with patch.object(algo._stock, "take", take):
        yield taken


def played_by(module, episode):
    """Whether these weights chose the actions."""
    observations = torch.tensor(episode.get_observations()[:-1])
    with torch.no_grad():
        expected = module.forward_train({Columns.OBS: observations})[Columns.ACTION_DIST_INPUTS]
    found = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)
    return np.allclose(found, expected, atol=1e-5)


def test_while_nothing_is_paid_a_request_brings_several_batches(unpaid):
    algo, before = unpaid, unpaid._position
    with rounds_asked(algo) as asked, reports_seen() as seen:
        results = [algo.train() for _ in range(2 * ROUND)]
    assert [r.batches for r in asked] == [ROUND] * 3, "two that were used, one ahead"
    for reports, result in zip(seen, results, strict=True):
        lengths = [s.length for report in reports for s in report.summaries]
        assert len(lengths) == result["env_runners"]["num_episodes"] == 8
        assert result["env_runners"]["num_env_steps_sampled"] == sum(lengths)
        assert result["env_runners"]["episode_len_mean"] == pytest.approx(np.mean(lengths))
    assert [r["training_iteration"] for r in results] == list(range(1, 2 * ROUND + 1))
    total = sum(s.length for reports in seen for r in reports for s in r.summaries)
    assert algo._position == before + total
    assert asked[2].position == algo._position, "seeds depend on where training stands"


def test_a_worker_that_dies_with_a_round(unpaid):
    """Its part is missing until it is back; nothing else is."""
    unpaid.train()
    pids = on_workers(unpaid, lambda runner: os.getpid())
    os.kill(pids[1], signal.SIGKILL)
    deadline, told, counts = time.monotonic() + 180, [], []
    while not (4 in counts and counts[-1] == 8 and len(told) > 1):
        assert time.monotonic() < deadline, "the worker did not come back"
        result = unpaid.train()
        counts.append(result["env_runners"]["num_episodes"])
        told += result["incidents"]
        time.sleep(0.2)
    assert set(counts) == {4, 8}
    assert "died" in told[0]


def test_same_seed_same_curve_and_restored_in_a_round_it_continues_to_the_digit(twins, tmp_path):
    def curve(algo, count):
        return [comparable(algo.train()) for _ in range(count)]

    algo, again = twins
    first = curve(algo, 1)
    # The checkpoint is to be in the middle of a round, after something was learned.
    while not (algo._stock and learner_of(algo)._weights_seq_no):
        first += curve(algo, 1)
    path = algo.save_to_path(tmp_path / "checkpoint")
    uninterrupted = curve(algo, 10)
    whole = first + uninterrupted
    for expected, got in zip(whole, curve(again, len(whole)), strict=True):
        assert differences(expected, got) == {}
    returns = {r["env_runners/episode_return_mean"] for r in uninterrupted}
    assert len(returns) > 1, "the test needs a batch that is learned from"
    for restored in (algo, again):
        restored.restore_from_path(path)
        for expected, got in zip(uninterrupted, curve(restored, 10), strict=True):
            assert differences(expected, got) == {}


def test_every_batch_is_new_and_played_by_the_newest_weights(twins):
    """Also where some batches are paid and learned from."""
    algo, learned, seen = twins[0], 0, set()
    with batches_taken(algo) as taken, rounds_asked(algo) as asked:
        for _ in range(24):
            module = copy.deepcopy(learner_of(algo).module["default_policy"])
            algo.train()
            parts = taken[-1]
            learned += any(report.any_reward for _, _, report in parts)
            episodes = [e for (share,), _, _ in parts for e in fetched(share).rl]
            assert all(played_by(module, episode) for episode in episodes)
            seen.update(e.get_observations().tobytes() for e in episodes)
    assert len(seen) == 24 * 8
    assert 3 <= learned <= 15, "the test needs both kinds of batches"
    assert {r.batches for r in asked} == {1, ROUND}
    assert len(asked) < 24


def test_what_was_played_before_a_model_began_to_pay_is_not_used(built):
    algo = built(lottery(**{CONSTANT: {"step": 1.0}}))
    paid = [algo.train()["env_runners"]["intrinsic_return_mean"] for _ in range(3)]
    assert paid[0] == 0
    assert min(paid[1:]) >= 1


def test_a_model_that_pays_nothing_still_gets_every_batch(built):
    algo = built(lottery(**{"tiny:States": {}}))
    with rounds_asked(algo) as asked:
        seen = [algo.train()["states"]["seen"] for _ in range(ROUND)]
    assert len(asked) == 2
    assert (np.diff(seen) > 0).all()


def test_where_every_batch_may_change_something_one_is_asked_for(built):
    algo = built(lottery(workers=1).training(learn_without_reward=True))
    with rounds_asked(algo) as asked:
        for _ in range(3):
            algo.train()
    assert {r.batches for r in asked} == {1}
