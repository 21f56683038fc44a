"""The robots that are stepped directly do exactly what Gymnasium's do, but for the delay."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rllib_conspec.environments import look
from rllib_conspec.environments import make_vector as make
from rllib_conspec.tasks.control.env import THRESHOLDS, DelayedControlEnv, made
from rllib_conspec.tasks.control.vector import PlanarRobots, make_vector

ID = "rllib_conspec:DelayedControl-v0"
ROBOTS = list(THRESHOLDS)


def play(env, count, seed=0):
    """Observations, rewards and ends of `count` steps of random actions, [count, E, …] each."""
    first, info = env.reset(seed=seed)
    actions = np.random.default_rng(seed).uniform(-1, 1, (count, *env.action_space.shape))
    steps = [env.step(a.astype(np.float32)) for a in actions]
    seen, rewards, terminated, truncated, infos = (list(part) for part in zip(*steps, strict=True))
    return (
        actions,
        np.array([first, *seen]),
        *map(np.array, (rewards, terminated, truncated)),
        ([info, *infos]),
    )


@pytest.mark.parametrize("robot", ROBOTS)
def test_step_by_step_as_the_single_environment(robot):
    """Also over the ends of episodes: the seed in the infos plays each one again."""
    many = make_vector(3, robot, max_episode_steps=60)
    one = DelayedControlEnv(robot, max_episode_steps=60)
    actions, seen, rewards, terminated, truncated, infos = play(many, 150)
    episodes = 0
    for e in range(3):
        over = True
        for t in range(150):
            if t == 0 or over:
                info = infos[0] if t == 0 else infos[t + 1]
                assert info["_reset_seed"][e]
                first, _ = one.reset(seed=int(info["reset_seed"][e]))
                episodes += 1
                if t > 0:  # this step only resets
                    np.testing.assert_allclose(seen[t + 1][e], first, rtol=1e-6)
                    assert rewards[t, e] == 0 and not terminated[t, e] and not truncated[t, e]
                    over = False
                    continue
                np.testing.assert_allclose(seen[0][e], first, rtol=1e-6)
            observation, reward, *ends, info = one.step(actions[t, e].astype(np.float32))
            np.testing.assert_allclose(seen[t + 1][e], observation, rtol=1e-5, atol=1e-6)
            assert rewards[t, e] == pytest.approx(reward, rel=1e-6, abs=1e-6)
            assert [terminated[t, e], truncated[t, e]] == ends
            over = any(ends)
            if over:
                assert infos[t + 1]["x_position"][e] == pytest.approx(info["x_position"])
    assert episodes >= 3 * 3


@pytest.mark.parametrize("robot", ROBOTS)
def test_returns_are_those_of_gymnasiums_own_environment(robot):
    """The delay changes no sum, and the rest of the reward nothing at all."""
    delayed, plain = DelayedControlEnv(robot), gym.make(robot, max_episode_steps=250)
    rng = np.random.default_rng(0)
    for seed in range(3):
        delayed.reset(seed=seed)
        plain.reset(seed=seed)
        sums, over = np.zeros(2), False
        while not over:
            action = rng.uniform(-1, 1, plain.action_space.shape).astype(np.float32)
            _, late, *_ = delayed.step(action)
            _, reward, terminated, truncated, _ = plain.step(action)
            sums += late, reward
            over = terminated or truncated
        assert sums[0] == pytest.approx(sums[1])


def test_the_forward_reward_comes_on_the_step_that_passes():
    """HalfCheetah pushed forward: it has no other reward but the cost of its actions."""
    env = make_vector(1, "HalfCheetah-v5", threshold=0.5)
    env.reset(seed=0)
    passed, x = 0, 0.0
    for _ in range(100):
        env._qvel[0][0] = 2.0
        before = x
        _, rewards, *_ = env.step(np.zeros((1, 6), np.float32))
        x = env._qpos[0][0]
        thresholds = np.floor((np.array([before, x]) - env._delay._start[0]) / 0.5)
        assert (rewards[0] > 0) == (thresholds[1] > thresholds[0] >= passed)
        passed = max(passed, int(thresholds[1]))
    assert passed > 5


@pytest.mark.parametrize("robot", ROBOTS)
def test_seeds_decide(robot):
    first, again, other = (play(make_vector(2, robot), 30, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0, 0], first[0, 1])  # nor are two environments alike


def test_another_robot_is_stepped_by_gymnasium():
    env = make_vector(2, "Swimmer-v5", threshold=0.5, max_episode_steps=7)
    assert isinstance(env, SyncVectorEnv)
    *_, truncated, infos = play(env, 9)
    assert truncated[6].all() and not truncated[:6].any()
    assert "reset_seed" in infos[0] and "reset_seed" in infos[8]


def test_what_looking_finds():
    facts = look(ID, {"robot": "Walker2d-v5"})
    assert facts.vectorised and facts.normalize and facts.max_episode_steps == 250
    assert facts.observation_space.dtype == np.float32
    env = make(ID, {"robot": "Walker2d-v5"}, 2, facts)
    assert isinstance(env.unwrapped, PlanarRobots)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert look(ID, {}, max_episode_steps=40).max_episode_steps == 40


def test_nothing_is_left_behind_by_mujoco(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    made("HalfCheetah-v5")
    assert capfd.readouterr().err == "" and not list(tmp_path.iterdir())
