"""Two remote workers: what they pay, and what happens when they die or raise; asked by the driver,
and each through a gatherer.

The tests share one algorithm, in the order of this file; the last one leaves no worker.
"""

import copy
import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pytest
import ray
from inside import (
    learners_own_reward,
    make_prototypes_pay,
    memories,
    on_workers,
    reports_seen,
    reward_learner,
    train_until_error,
    trained_on,
    version_of,
)
from ray.rllib.connectors.connector_v2 import ConnectorV2
from tiny import LostMarbles, broken_success, keys_config, plain_config, reached_fifty

from rllib_conspec.algorithm import ppo
from rllib_conspec.algorithm.ppo import WorkersLost


@pytest.fixture(scope="module", params=[2, 1], ids=["asked by the driver", "gathered"])
def pair(ray_local, request):
    """Two remote workers that share seven episodes, memories that forget nothing."""
    config = keys_config(
        runners=2, threshold=0.0, memory_size=500, memory_batch=4, freeze_after=1000
    )
    config.episodes(per_batch=7, per_minibatch=1).fault_tolerance(
        delay_between_env_runner_restarts_s=1.0
    )
    algo = config.build_algo()
    assert algo._workers._most == 16
    algo._workers._most = request.param
    yield algo
    algo.stop()


def versions(algo):
    """{worker index: version of the snapshot that it paid with last}: they hear of a newer one with
    the next request.
    """
    return on_workers(algo, lambda runner: runner.reward_model.version)


def wait_for_all(algo, check=lambda learner, episodes, result: None, limit=180.0):
    """Train until both workers take part again."""
    deadline = time.monotonic() + limit
    while True:
        learner = copy.deepcopy(reward_learner(algo))
        episodes, result = trained_on(algo)
        check(learner, episodes, result)
        if len(episodes) == 7:
            return
        assert time.monotonic() < deadline, "the worker did not come back"
        time.sleep(1.0)


def assert_paid_by(learner, episode, form="window"):
    """The rewards are what this learner would pay; the task itself pays only on the last step."""
    expected = learners_own_reward(learner, 0.99, episode, form)
    np.testing.assert_allclose(episode.get_rewards()[:-1], expected[:-1], atol=1e-5)
    extrinsic = episode.get_rewards()[-1] - expected[-1]
    assert min(abs(extrinsic), abs(extrinsic - 1)) < 1e-4
    return expected.sum()


def test_remote_workers_share_the_batch(pair):
    episodes, result = trained_on(pair)
    assert len(episodes) == 7
    assert all(e.is_done for e in episodes)
    assert result["env_runners"]["num_episodes"] == 7
    held = memories(pair)
    assert sum(held["counts"]) == 7
    assert sorted(f for g in held["episodes"] for f in g) == sorted(
        e.get_observations()[1:].tobytes() for e in episodes
    )


@pytest.mark.parametrize("form", ["potential", "window"])  # the tests after it expect window
def test_remote_workers_pay_what_the_learner_would(pair, form):
    def use_form(runner):
        scorer = runner.reward_model.models["conspec"].scorer
        scorer.options = dataclasses.replace(scorer.options, intrinsic=form)

    pair.env_runner_group.foreach_env_runner(use_form)
    make_prototypes_pay(pair)
    version, learner = version_of(pair), copy.deepcopy(reward_learner(pair))
    episodes, result = trained_on(pair)
    assert versions(pair) == {1: version, 2: version}
    paid = [assert_paid_by(learner, e, form) for e in episodes]
    assert np.abs(paid).max() > 0
    assert result["env_runners"]["intrinsic_return_mean"] == pytest.approx(np.mean(paid), rel=1e-4)
    assert result["env_runners"]["episode_return_max"] <= 1


def test_snapshots_are_broadcast_every_iteration(pair):
    for _ in range(2):
        version = version_of(pair)
        with reports_seen() as seen:
            pair.train()
        assert [report.version for report in seen[0]] == [version, version]
        assert versions(pair) == {1: version, 2: version}
        assert version_of(pair) == pair.env_runner.reward_model.version == version + 1


def test_a_worker_killed_in_mid_iteration(pair):
    """Training goes on, memories keep everything, the new worker pays with the right snapshot."""
    make_prototypes_pay(pair)
    result = pair.train()
    before, steps = memories(pair), result["num_env_steps_sampled_lifetime"]
    pids = on_workers(pair, lambda runner: os.getpid())
    os.kill(pids[1], signal.SIGSTOP)  # it cannot finish its episodes before it is killed
    killer = threading.Timer(2.0, os.kill, (pids[1], signal.SIGKILL))
    killer.start()
    learner, start = copy.deepcopy(reward_learner(pair)), time.monotonic()
    episodes, result = trained_on(pair)
    killer.join()
    assert time.monotonic() - start > 1.5, "the iteration was over before the kill"
    assert len(episodes) == 3, "the other worker's share"
    (incident,) = result["incidents"]
    assert incident.startswith("rollout worker 1 died (1 death so far)")
    seen = {"steps": steps, "count": sum(before["counts"])}

    def check(learner, episodes, result):
        now = memories(pair)
        for old, new in zip(before["episodes"], now["episodes"], strict=True):
            assert new[: len(old)] == old, "something stored was lost"
        assert sum(now["counts"]) == seen["count"] + len(episodes)
        assert result["num_env_steps_sampled_lifetime"] > seen["steps"]
        # Whoever played, was paid with the newest snapshot.
        assert max(abs(assert_paid_by(learner, e)) for e in episodes) > 0
        seen.update(count=sum(now["counts"]), steps=result["num_env_steps_sampled_lifetime"])

    check(learner, episodes, result)
    wait_for_all(pair, check)
    new = on_workers(pair, lambda runner: os.getpid())
    assert new[2] == pids[2]
    assert new[1] != pids[1]
    version = version_of(pair) - 1  # before the iteration in which both took part
    assert versions(pair) == {1: version, 2: version}


def test_a_worker_killed_between_iterations(pair):
    pair.train()
    version = version_of(pair)
    pids = on_workers(pair, lambda runner: os.getpid())
    os.kill(pids[2], signal.SIGKILL)
    for i in (1, 2):
        result = pair.train()
        assert version_of(pair) == version + i
        assert result["env_runners"]["num_episodes"] >= 3


def test_an_exception_in_a_remote_worker_ends_training(pair):
    """RLlib itself would restart the worker for ever, and go on with nothing sampled."""
    wait_for_all(pair)

    def use(success):
        pair.env_runner_group.foreach_env_runner(
            lambda runner: setattr(runner, "_success", success),
            local_env_runner=False,
            healthy_only=False,
        )

    use(broken_success)
    error = train_until_error(pair, LostMarbles)
    assert "no idea what success is" in str(error)
    assert any("rollout worker" in note for note in error.__notes__), "which worker is not said"
    # A program that catches it, mends the cause and trains on, can.
    use(reached_fifty)
    wait_for_all(pair)


def test_a_gatherer_that_is_killed(pair):
    """Its worker's share is missing once; then the driver asks the worker itself."""
    pair._workers._most = 1
    wait_for_all(pair)
    posts = pair._workers._posts
    assert len(posts) == 2
    ray.kill(posts[0].gatherer)
    episodes, result = trained_on(pair)
    assert len(episodes) == 3
    (incident,) = result["incidents"]
    assert incident.startswith("the process that gathers the answers of rollout workers 1 died")
    episodes, result = trained_on(pair)
    assert len(episodes) == 7
    assert list(result["incidents"]) == []
    assert len(posts) == 1


def test_all_workers_gone_is_an_error_in_the_end(pair):
    """Not silent iterations with nothing in them. Comes last: nobody is left afterwards."""
    wait_for_all(pair)
    pair.config._is_frozen = False
    pair.config.worker_timeout_s = 0.5
    before = memories(pair)
    for pid in on_workers(pair, lambda runner: os.getpid()).values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkersLost, match="worker_timeout_s"):
        pair.train()
    assert memories(pair) == before


class Silent(ConnectorV2):
    """A user's connector that changes nothing."""

    def __call__(self, *, batch, **kwargs):
        return batch


def test_workers_with_connectors_of_a_users_are_asked_by_the_driver(built, monkeypatch):
    """Which sends them the connectors' states: others' requests might come first."""
    monkeypatch.setattr(ppo, "MOST", 1)
    config = plain_config(runners=2)
    config.env_runners(env_to_module_connector=lambda *args, **kwargs: Silent())
    algo = built(config)
    assert algo.train()["env_runners"]["num_episodes"] == 8
    assert algo._workers._posts is None
