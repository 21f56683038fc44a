"""The rollout worker by itself: its share of episodes, what it reports, its state."""

import numpy as np
import pytest
import ray
import torch
from runners import NOTHING_NEW, Counting, frames, paying, reported, runner_of
from tiny import clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import COMPONENT_SNAPSHOT, News
from rllib_conspec.algorithm.report import fetched

# --- shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "shares"), [(1, [8]), (2, [4, 4]), (3, [3, 3, 2])])
def test_workers_share_the_batch(ray_local, workers, shares):
    runners = [runner_of(keys_config(runners=workers), i + 1) for i in range(workers)]
    assert [len(r.sample()) for r in runners] == shares
    # The next batch is whole again: nothing is carried over.
    assert [len(r.sample()) for r in runners] == shares


def test_more_workers_than_episodes(ray_local):
    config = keys_config(runners=9)
    assert [len(runner_of(config, i).sample()) for i in (1, 8, 9)] == [1, 1, 0]


def test_local_worker_plays_the_whole_batch():
    assert len(runner_of(keys_config()).sample()) == 8


@pytest.mark.parametrize("learners", [0, 1, 3])
def test_a_batch_is_dealt_out_to_the_learners(learners):
    runner = runner_of(keys_config().learners(num_learners=learners))
    ((shares, metrics, report),) = runner.sample_shares(0, NOTHING_NEW)
    assert [len(s.rl) for s in shares] == {0: [8], 1: [8], 3: [3, 3, 2]}[learners]
    assert metrics["num_episodes"].peek() == 8
    # In the order of the summaries, wherever they are.
    assert [len(e) for e in reported(report)] == [s.length for s in report.summaries]
    for share in shares:
        for rl, episode in zip(share.rl, share.episodes, strict=True):
            np.testing.assert_array_equal(rl.get_observations(), episode.observations)


def test_several_batches_in_one_go(ray_local):
    """Each with its own metrics and report; together what one play of all environments gives."""
    config = clock_config(runners=2).env_runners(num_envs_per_env_runner=8)
    runner = runner_of(config, index=2)
    parts = runner.sample_shares(0, NOTHING_NEW, batches=3)
    assert len(parts) == 3
    played = []
    for (share,), metrics, report in parts:
        episodes = fetched(share).rl
        assert len(episodes) == len(report.summaries) == len(reported(report)) == 4
        assert [len(e) for e in episodes] == [s.length for s in report.summaries]
        assert metrics["num_episodes"].peek() == 4
        assert metrics["num_env_steps_sampled"].peek() == sum(map(len, episodes))
        assert metrics["episode_len_mean"].peek() == np.mean([len(e) for e in episodes])
        assert report.sample_seconds > 0
        played += episodes
    (((share,), _, _),) = runner_of(config.episodes(per_batch=24), index=2).sample_shares(
        0, NOTHING_NEW
    )
    np.testing.assert_array_equal(frames(played), frames(fetched(share).rl))


def test_rllibs_own_loop_plays_one_batch_at_a_time():
    runner = runner_of(clock_config().callbacks(callbacks_class=Counting))
    assert len(runner.sample_shares(0, NOTHING_NEW, batches=3)) == 1


@pytest.mark.parametrize("quick", [True, False])
def test_exact_number_of_whole_episodes_whatever_their_lengths(quick):
    config = clock_config(WholeEpisodePPOConfig)
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    for _ in range(10):
        episodes = runner.sample()
        assert len(episodes) == 8
        assert all(e.is_done for e in episodes)
        assert all(len(e) == e.get_observations(0)[2] for e in episodes)


@pytest.mark.parametrize("quick", [True, False])
def test_broken_episodes_are_counted_and_nothing_else_sees_them(quick):
    config = clock_config(lengths=(2, 3, 20), drop_at=5)
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    dropped = 0
    for _ in range(5):
        episodes = runner.sample()
        assert all(len(e) in (2, 3) for e in episodes)
        shown = runner.get_metrics()
        assert shown["episode_len_max"].peek() <= 3
        assert shown["num_episodes"].peek() >= len(episodes)
        report = runner.take_report()
        assert len(report.summaries) == len(episodes)
        assert all(s.length in (2, 3) for s in report.summaries)
        dropped += report.dropped
    assert dropped > 0


def test_metrics_count_every_step_and_episode():
    runner = runner_of(keys_config())
    episodes = runner.sample()
    results = runner.get_metrics()
    assert results["num_episodes"].peek() == 8
    assert results["num_env_steps_sampled"].peek() == sum(len(e) for e in episodes)
    assert results["episode_len_mean"].peek() == np.mean([len(e) for e in episodes])


# --- reports --------------------------------------------------------------------------------------


def test_a_report_is_given_once():
    runner = runner_of(keys_config())
    runner.sample()
    first, second = runner.take_report(), runner.take_report()
    assert len(first.summaries) == len(first.episodes) == 8
    assert first.sample_seconds > 0
    assert second.summaries == second.episodes == []
    assert second.sample_seconds == 0


def test_a_remote_worker_reports_references(ray_local):
    """Frames stay in the store until a learner wants them, and are there once."""
    runner = runner_of(keys_config(runners=1), index=1)
    ((shares, _, report),) = runner.sample_shares(0, NOTHING_NEW)
    assert all(isinstance(p.share, ray.ObjectRef) for p in report.episodes)
    assert {p.share for p in report.episodes} == set(shares)
    (share,) = map(ray.get, shares)
    for rl, episode in zip(share.rl, share.episodes, strict=True):
        assert np.shares_memory(rl.observations.data, episode.observations)


def test_frames_are_copied_once_in_the_worker():
    runner = runner_of(keys_config())
    (((share,), _, _),) = runner.sample_shares(0, NOTHING_NEW)
    for rl, episode in zip(share.rl, share.episodes, strict=True):
        assert rl.observations.data is episode.observations
    assert len({id(e.observations.base) for e in share.episodes}) == 1, "one block for all"


# --- state ----------------------------------------------------------------------------------------


def test_state_carries_the_snapshot():
    config = keys_config(threshold=0.0)
    a, b = paying(runner_of(config)), runner_of(config)
    b.set_state(a.get_state())
    assert b.reward_model.version == 17
    a.sample()
    episodes = reported(a.take_report())
    for x, y in zip(a.reward_model.reward(episodes), b.reward_model.reward(episodes), strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.abs(x).sum() > 0
    assert COMPONENT_SNAPSHOT not in a.get_state(components=["rl_module"])


def test_news_is_taken_in_once():
    a, b = (runner_of(keys_config(seed=seed)) for seed in (1, 2))
    paying(a)
    weights = News(3, a.get_state(components=["rl_module"]))
    b.hear({"weights": weights, "snapshot": News(4, a.snapshot)})
    assert b.reward_model.version == 17
    for name, weight in a.module.state_dict().items():
        assert torch.equal(weight, b.module.state_dict()[name])
    with torch.no_grad():
        b.module.actor.weight.zero_()
    b.hear({"weights": weights, "snapshot": News(5, a.snapshot | {"version": 18})})
    assert not b.module.actor.weight.any(), "the same weights, heard twice"
    assert b.reward_model.version == 18


def test_news_by_reference(ray_local):
    a, b = (runner_of(keys_config(seed=seed)) for seed in (1, 2))
    weights = a.get_state(components=["rl_module"])
    news = {"weights": weights, "snapshot": paying(a).snapshot}
    b.sample_shares(0, {name: News(1, ray.put(thing)) for name, thing in news.items()})
    assert b.reward_model.version == 17
    for name, weight in a.module.state_dict().items():
        assert torch.equal(weight, b.module.state_dict()[name])


# --- failures -------------------------------------------------------------------------------------


def test_a_failure_is_kept_for_the_driver():
    runner = runner_of(plain_config())
    with pytest.raises(ZeroDivisionError):
        runner.apply(lambda r: 1 / 0)
    assert isinstance(runner.failure, ZeroDivisionError)
    assert "rollout worker 0" in "".join(runner.failure.__notes__)
