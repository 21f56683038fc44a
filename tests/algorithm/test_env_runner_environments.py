"""A rollout worker and its environments: how they are made, what is seen of them, and seeds."""

import numpy as np
import pytest
from runners import Counting, frames, played_at, reported, runner_of
from tiny import Ageless, Clock, Parts, clock_config, plain_config


@pytest.mark.parametrize("env", [Ageless, "tiny:Ageless"])
def test_the_longest_episode_is_a_real_limit(env):
    config = clock_config(env=env).episodes(max_steps=7)
    episodes = runner_of(config).sample()
    assert [len(e) for e in episodes] == [7] * 8
    assert all(e.is_truncated and not e.is_terminated for e in episodes)


def test_an_environment_by_its_import_path_is_the_same_as_by_its_class():
    by_class, by_path = (
        runner_of(clock_config(env=env, lengths=(2, 3))).sample() for env in (Clock, "tiny:Clock")
    )
    np.testing.assert_array_equal(frames(by_class), frames(by_path))
    assert {len(e) for e in by_path} == {2, 3}


def test_dict_observations_are_one_vector():
    whole, parts = (runner_of(clock_config(env=env)).sample() for env in (Clock, Parts))
    np.testing.assert_array_equal(frames(whole), frames(parts))


def test_one_entry_of_dict_observations_if_asked_for():
    config = clock_config(env=Parts).episodes(observation_key="works")
    for episode in runner_of(config).sample():
        assert episode.get_observations().shape == (len(episode) + 1, 2)
        assert (episode.get_observations()[:, 0] == len(episode)).all()


@pytest.mark.parametrize("quick", [True, False])
def test_what_a_plain_environment_marks_is_told_with_its_episodes(quick):
    config = clock_config()
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    runner.sample()
    lengths = set()
    for episode in reported(runner.take_report()):
        expected = [(t, f"strikes {(t + 1) // 5}") for t in (4, 9, 14, 19) if t < len(episode)]
        assert list(episode.events) == expected
        lengths.add(len(episode))
    assert 20 in lengths


def test_an_episode_can_be_played_again_from_its_seed_and_actions():
    runner = runner_of(clock_config())
    runner.sample()
    for episode in reported(runner.take_report()):
        env = Clock()
        seen = [env.reset(seed=episode.seed)[0], *(env.step(a)[0] for a in episode.actions)]
        # The first number counts the episodes of one environment.
        np.testing.assert_array_equal(np.array(seen)[:, 1:], episode.observations[:, 1:])


# --- seeds ----------------------------------------------------------------------------------------


def test_what_is_played_depends_on_seed_worker_and_position(ray_local):
    def played(seed=1, index=1, position=0):
        return played_at(runner_of(plain_config(runners=2, seed=seed), index), position)

    first = played()
    np.testing.assert_array_equal(first, played())
    for other in (played(seed=2), played(index=2), played(position=1)):
        assert first.shape != other.shape or not np.array_equal(first, other)


def test_what_was_played_before_does_not_matter():
    """Position in training, not history, decides: that is what makes a restored run equal."""
    runner = runner_of(plain_config())
    first, _, again = (played_at(runner, position) for position in (520, 0, 520))
    np.testing.assert_array_equal(first, again)


def test_without_a_seed_batches_differ():
    runner = runner_of(plain_config(seed=None))
    a, b = frames(runner.sample()), frames(runner.sample())
    assert a.shape != b.shape or not np.array_equal(a, b)
