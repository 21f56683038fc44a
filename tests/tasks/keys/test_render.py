import gymnasium as gym
import numpy as np
import pytest

from rllib_conspec.tasks.keys.script import optimal_actions

ID = "rllib_conspec:MultiKeyToDoor-v0"


def test_pictures_are_large_and_follow_the_game():
    env = gym.make(ID, keys=2, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    assert before.dtype == np.uint8
    assert before.shape[0] >= 400 and before.shape[1] >= 400 and before.shape[2] == 3
    pictures = [before]
    for action in optimal_actions(2):
        env.step(action)
        pictures.append(env.render())
    # The step counter alone makes every picture a different one; the room must change as well.
    rooms = {picture[:, :420].tobytes() for picture in pictures}
    assert len(rooms) > 10
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_spectators_see_what_the_agent_holds():
    envs = gym.make_vec(ID, 2, vectorization_mode="vector_entry_point", render_mode="rgb_array")
    envs.reset(seed=[5, 5])
    for action in optimal_actions(1)[:20]:
        # The second agent walks into the wall instead of to the key.
        in_first_room = envs.unwrapped.view(0).stage.key == 1
        envs.step(np.array([action, 1 if in_first_room else action]))
    holder, other = envs.render()
    assert np.array_equal(holder[:, :420], other[:, :420])
    assert not np.array_equal(holder[:, 420:], other[:, 420:])


def test_without_a_mode_there_is_no_picture():
    envs = gym.make_vec(ID, 2, vectorization_mode="vector_entry_point")
    envs.reset(seed=0)
    assert envs.unwrapped.render() is None


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="rgb_array"):
        gym.make_vec(ID, 2, vectorization_mode="vector_entry_point", render_mode="ansi")
