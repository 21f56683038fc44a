"""Workers that play the next batch while the reward models learn, and are paid for it later."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
from inside import (
    comparable,
    differences,
    make_prototypes_pay,
    on_workers,
    reports_seen,
    version_of,
)
from tiny import keys_config, plain_config

from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.ppo import PLAY, WholeEpisodePPO


class Counting(EpisodeRunner):
    """Counts how often it played, and how often before it was asked for shares."""

    plays = ahead = 0

    def _played(self, count):
        self.plays += 1
        return super()._played(count)

    def play_ahead(self, *args, **kwargs):
        self.ahead += 1
        super().play_ahead(*args, **kwargs)


def counting_config(**kwargs):
    return keys_config(runners=2, **kwargs).env_runners(env_runner_cls=Counting)


@contextmanager
def nobody_plays_ahead():
    with patch.object(WholeEpisodePPO, "_play_ahead", lambda algo: None):
        yield


def counts(algo):
    """How often all workers played, and how often of that ahead."""
    found = on_workers(algo, lambda runner: (runner.plays, runner.ahead))
    assert len(set(found.values())) == 1
    return found[1]


@pytest.fixture(scope="module")
def ahead(ray_local):
    with patch("rllib_conspec.algorithm.ppo.cores_to_spare", return_value=1):  # on any machine
        algo = counting_config().build_algo()
    make_prototypes_pay(algo)
    yield algo
    algo.stop()


def test_every_batch_is_played_once_and_paid_by_the_newest_snapshot(ahead):
    first = version_of(ahead)
    with reports_seen() as seen:
        results = [ahead.train() for _ in range(4)]
    assert [{r.version for r in some} for some in seen] == [{first + n} for n in range(4)]
    for some, result in zip(seen, results, strict=True):
        assert sum(len(r.summaries) for r in some) == result["env_runners"]["num_episodes"] == 8
        assert result["seconds"]["sample"] > 0
    # The next batch is being played, or has been; nothing was played twice.
    assert counts(ahead) == (5, 4)


def test_it_comes_to_the_same_as_waiting(ahead, tmp_path):
    """Also after a restore, which leaves workers with a batch that another state had played."""
    path = ahead.save_to_path(str(tmp_path / "checkpoint"))
    curves = [[comparable(ahead.train()) for _ in range(3)]]
    for _ in range(2):
        ahead.restore_from_path(path)
        with nobody_plays_ahead():
            curves.append([comparable(ahead.train())])
            before = counts(ahead)
            curves[-1] += [comparable(ahead.train()) for _ in range(2)]
            assert counts(ahead) == (before[0] + 2, before[1])
    for other in curves[1:]:
        for expected, got in zip(curves[0], other, strict=True):
            assert differences(expected, got) == {}
    assert curves[0][0] != curves[0][1]


def test_through_gatherers_it_comes_to_the_same(ahead, tmp_path):
    path, curves = ahead.save_to_path(str(tmp_path / "checkpoint")), []
    for most in (2, 1):
        with patch.object(ahead._workers, "_most", most):
            before = counts(ahead)
            curves.append([comparable(ahead.train()) for _ in range(3)])
            ahead._workers.answers(PLAY, None)  # or our question might come before the request
            assert counts(ahead)[1] == before[1] + 3
        ahead.restore_from_path(path)
    for expected, got in zip(*curves, strict=True):
        assert differences(expected, got) == {}


def test_steps_are_counted_once(ahead):
    before = ahead._position
    steps = [ahead.train()["env_runners"]["num_env_steps_sampled"] for _ in range(2)]
    assert ahead._position == before + sum(steps)


def test_what_other_weights_played_is_not_used(ahead):
    """Here nothing else tells: same place, same number of batches."""
    ahead.train()
    plays, asked = counts(ahead)
    state = ahead.learner_group.get_state()
    module = state["learner"]["rl_module"]["default_policy"]
    name = next(n for n in module if n.endswith("weight"))
    module[name] = module[name] * 1.5
    ahead.learner_group.set_state(state)
    ahead._tell_all()
    ahead.train()
    assert counts(ahead) == (plays + 2, asked + 1)


@pytest.mark.parametrize(
    ("config", "spare"), [(plain_config, 1), (keys_config, 0)], ids=["no reward model", "no core"]
)
def test_where_nothing_would_be_gained_workers_wait(ray_local, config, spare):
    with patch("rllib_conspec.algorithm.ppo.cores_to_spare", return_value=spare):
        algo = config(runners=1).env_runners(env_runner_cls=Counting).build_algo()
    results = [algo.train() for _ in range(2)]
    found = counts(algo)
    algo.stop()
    assert all(r["env_runners"]["num_episodes"] == 8 for r in results)
    assert found == (2, 0)
