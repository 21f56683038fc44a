import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.layout import TURN_LEFT, VARIANTS

ID = "rllib_conspec:OrangeTree-v0"


def solve(env, seed=0):
    """Steps of a scripted episode."""
    env.reset(seed=seed)
    steps, over = [], False
    while not over:
        steps.append(env.step(script.action(env.unwrapped.game.view(0))))
        over = steps[-1][2]
    return steps


@pytest.mark.parametrize("variant", VARIANTS)
def test_gymnasium_finds_nothing_to_complain_about(variant):
    env = gym.make(ID, variant=variant, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_an_idle_episode_lasts_until_the_time_limit_and_terminates():
    env = gym.make(ID)
    env.reset(seed=0)
    steps = [env.step(TURN_LEFT) for _ in range(65)]
    assert [terminated for _, _, terminated, *_ in steps] == [False] * 64 + [True]
    assert not any(truncated for *_, truncated, _ in steps)
    assert steps[-1][-1] == {"is_success": False}
    assert env.unwrapped.max_episode_steps == 65


def test_reward_is_one_or_as_given_and_comes_with_the_orange():
    for options, paid in [({}, 1.0), ({"normalize_reward": False}, 10.0)]:
        steps = solve(gym.make(ID, **options))
        assert [reward for _, reward, *_ in steps] == [0.0] * (len(steps) - 1) + [paid]
        assert steps[-1][-1] == {"orange_picked": 1, "is_success": True}
        events = [info for *_, info in steps[:-1] if set(info) - {"apple_taken"}]
        assert events == [{"flat_taken": 1}]


def test_stepping_on_after_the_end_is_an_error():
    env = gym.make(ID).unwrapped
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    solve(env)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_a_single_environment_plays_what_a_vector_plays():
    seeds = [40, 41, 42]
    envs = gym.make_vec(ID, 3, vectorization_mode="vector_entry_point")
    singles = [gym.make(ID) for _ in seeds]
    together, _ = envs.reset(seed=40)
    for single, seed, expected in zip(singles, seeds, together, strict=True):
        assert np.array_equal(single.reset(seed=seed)[0], expected)
    rng = np.random.default_rng(0)
    over = np.zeros(3, bool)
    for _ in range(140):
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
    with pytest.raises(TypeError, match="varaint"):
        gym.make(ID, varaint="black")
