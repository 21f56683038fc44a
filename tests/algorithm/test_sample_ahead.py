"""Workers that play the next batch while the reward model learns."""

import pytest
from inside import make_prototypes_pay, reports_seen, version_of
from tiny import keys_config, plain_config

from rllib_conspec.errors import OptionError


@pytest.fixture(scope="module")
def ahead(ray_local):
    algo = keys_config(runners=2).episodes(sample_ahead=True).build_algo()
    make_prototypes_pay(algo)
    yield algo
    algo.stop()


def reports_of(algo, iterations):
    """What the workers reported in each iteration."""
    with reports_seen() as seen:
        results = [algo.train() for _ in range(iterations)]
    return seen, results


def versions(reports):
    return [{r.version for r in some if r.summaries} for some in reports]


def test_every_batch_is_paid_by_the_snapshot_before_the_last_one(ahead):
    first = version_of(ahead)
    reports, results = reports_of(ahead, 4)
    assert versions(reports) == [{first}, {first}, {first + 1}, {first + 2}]
    for some, result in zip(reports, results, strict=True):
        assert sum(len(r.summaries) for r in some) == 8
        assert result["env_runners"]["num_episodes"] == 8
    assert version_of(ahead) == first + 4


def test_steps_are_counted_once(ahead):
    before = ahead._position
    steps = [ahead.train()["env_runners"]["num_env_steps_sampled"] for _ in range(2)]
    assert ahead._position == before + sum(steps)


def test_a_restored_state_does_not_learn_from_what_was_played_before(ahead, tmp_path):
    path = ahead.save_to_path(str(tmp_path / "checkpoint"))
    saved = version_of(ahead)
    ahead.train()
    ahead.restore_from_path(path)
    reports, _ = reports_of(ahead, 2)
    assert versions(reports) == [{saved}, {saved}]


def test_the_papers_order_is_the_default(ray_local):
    algo = keys_config(runners=1).build_algo()
    first = version_of(algo)
    reports, _ = reports_of(algo, 3)
    algo.stop()
    assert versions(reports) == [{first}, {first + 1}, {first + 2}]


def test_plain_ppo_may_sample_ahead_too(ray_local):
    algo = plain_config(runners=1).episodes(sample_ahead=True).build_algo()
    results = [algo.train() for _ in range(2)]
    algo.stop()
    assert all(r["env_runners"]["num_episodes"] == 8 for r in results)


def test_there_must_be_someone_who_plays_ahead():
    with pytest.raises(OptionError, match="num_env_runners"):
        keys_config(runners=0).episodes(sample_ahead=True).validate()
