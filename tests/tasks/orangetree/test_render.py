import gymnasium as gym
import numpy as np

from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

ID = "rllib_conspec:OrangeTree-v0"
SEEN = 420  # columns of the enlarged observation


def test_pictures_show_the_observation_enlarged():
    env = gym.make(ID, render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape == (420, 600, 3)
    assert np.array_equal(picture[2:SEEN:5, 2:SEEN:5], observation)


def test_the_map_follows_the_agent_and_the_strip_tells_what_was_taken():
    envs = OrangeTreeVectorEnv(2, render_mode="rgb_array")
    envs.reset(seed=[5, 5])
    one, other = envs.render()
    assert np.array_equal(one, other)
    for t in range(20):
        # Both do nothing in the waiting room, so that only what they took tells them apart.
        views = [envs.view(i) for i in (0, 1)]
        actions = [script.action(views[0]), script.action(views[1], flat=False)]
        envs.step(np.array(actions if t < 14 else [2, 2]))
    holder, other = envs.render()
    assert np.array_equal(holder[:, :SEEN], other[:, :SEEN])
    assert not np.array_equal(holder[:, SEEN:], other[:, SEEN:])
    before = holder[220:, SEEN:]
    envs.step(np.array([0, 2]))
    walked, turned = (picture[220:, SEEN:] for picture in envs.render())
    assert len({before.tobytes(), walked.tobytes(), turned.tobytes()}) == 3


def test_every_stage_can_be_drawn():
    envs = OrangeTreeVectorEnv(1, render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = set()
    for _ in range(57):
        envs.step(script.actions(envs))
        pictures.add(envs.render()[0].tobytes())
    assert len(pictures) == 57


def test_without_a_mode_there_is_no_picture():
    envs = OrangeTreeVectorEnv(1)
    envs.reset(seed=0)
    assert envs.render() is None
