import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.keys.env import MultiKeyToDoorEnv

ID = "rllib_conspec:Unity-v0"
BASE = 26000


def test_gymnasium_finds_nothing_to_complain_about(player):
    build = player("machine", "--actions", "continuous", "--agents", 1)
    env = gym.make(ID, file_name=build, base_port=BASE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*(infinity|distutils).*")
        check_env(env.unwrapped)
    env.close()


def test_it_plays_what_the_first_environment_plays(player):
    """Also in a build with several agents: the others stand still."""
    env = gym.make(ID, file_name=player("keys", "--agents", 3), base_port=BASE).unwrapped
    reference = MultiKeyToDoorEnv()
    assert np.array_equal(env.reset(seed=5)[0], reference.reset(seed=5)[0])
    over = False
    while not over:
        *ours, over, truncated, info = env.step(0)
        *theirs, terminated, _, expected = reference.step(0)
        assert np.array_equal(ours[0], theirs[0])
        assert (ours[1], over, truncated) == (theirs[1], terminated, False)
        assert info == expected
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    assert env.max_episode_steps == 65
    assert env.critical_events == ("key_taken", "door_opened")
    env.close()
    assert env.pid is None


def test_the_end_of_an_episode_by_time_is_a_truncation(player):
    env = gym.make(ID, file_name=player("machine", "--agents", 1), base_port=BASE).unwrapped
    env.reset()
    steps = [env.step(env.action_space.sample()) for _ in range(4)]
    assert [truncated for *_, truncated, _ in steps] == [False, False, False, True]
    assert not any(terminated for _, _, terminated, *_ in steps)
    assert [info for *_, info in steps] == [{}, {"rang": 2}, {}, {}]
    with pytest.raises(gym.error.ResetNeeded):
        env.step(env.action_space.sample())
    assert env.reset()[0]["gauge"].tolist() == [0, 0, 0]
    env.close()


def test_a_wrong_number_of_agents_is_told_if_it_was_given(player):
    with pytest.raises(OptionError, match="num_agents: the player has 3 agents, not 2"):
        gym.make(ID, file_name=player("keys", "--agents", 3), num_agents=2, base_port=BASE)
