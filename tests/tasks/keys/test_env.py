import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_conspec.tasks.keys.script import optimal_actions

ID = "rllib_conspec:MultiKeyToDoor-v0"


@pytest.mark.parametrize("conjunctive", [False, True])
def test_gymnasium_finds_nothing_to_complain_about(conjunctive):
    env = gym.make(ID, keys=2, conjunctive=conjunctive, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_an_idle_episode_lasts_until_the_time_limit_and_terminates():
    env = gym.make(ID, keys=1)
    env.reset(seed=0)
    steps = [env.step(0) for _ in range(65)]
    assert [terminated for _, _, terminated, *_ in steps] == [False] * 64 + [True]
    assert not any(truncated for *_, truncated, _ in steps)
    assert steps[-1][-1] == {"is_success": False}
    assert env.unwrapped.max_episode_steps == 65


def test_stepping_on_after_the_end_is_an_error():
    env = gym.make(ID, keys=1).unwrapped
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in optimal_actions(1):
        env.step(action)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_reward_is_one_or_as_given():
    for options, paid in [({}, 1.0), ({"normalize_reward": False}, 10.0)]:
        env = gym.make(ID, keys=1, **options)
        env.reset(seed=0)
        assert sum(env.step(action)[1] for action in optimal_actions(1)) == paid


@pytest.mark.parametrize("episodes", [3])
def test_a_single_environment_plays_what_a_vector_plays(episodes):
    seeds = [40, 41, 42]
    envs = gym.make_vec(ID, 3, vectorization_mode="vector_entry_point", keys=2)
    singles = [gym.make(ID, keys=2) for _ in seeds]
    together, _ = envs.reset(seed=40)
    for single, seed, expected in zip(singles, seeds, together, strict=True):
        assert np.array_equal(single.reset(seed=seed)[0], expected)
    rng = np.random.default_rng(0)
    over = np.zeros(3, bool)
    for _ in range(episodes * 126):
        actions = rng.integers(4, size=3)
        observations, rewards, terminated, *_ = envs.step(actions)
        for i, single in enumerate(singles):
            if over[i]:
                observation, reward, done = single.reset()[0], 0.0, False
            else:
                observation, reward, done, *_ = single.step(actions[i])
            assert np.array_equal(observation, observations[i])
            assert (reward, done) == (rewards[i], terminated[i])
        over = terminated


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="kyes"):
        gym.make(ID, kyes=2)
