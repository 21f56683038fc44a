import numpy as np
import pytest

from rllib_conspec.environments import look, make_single
from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.control.env import DelayedControlEnv

ID = "rllib_conspec:DelayedControl-v0"


@pytest.mark.parametrize(
    ("env_config", "line"),
    [
        ({"robot": "Hoper-v5"}, 'robot: unknown environment "Hoper-v5". Did you mean "Hopper-v5"?'),
        ({"robot": "Pendulum-v1", "threshold": 1.0}, 'robot: "Pendulum-v1" has no x_position'),
        ({"threshold": 0}, "threshold: must be more than 0 units of x, not 0."),
        ({"threshold": -2.0}, "threshold: must be more than 0 units of x, not -2.0."),
        ({"robot": "Ant-v5"}, "threshold: has to be set for Ant-v5"),
        ({"treshold": 1.0}, 'treshold: unknown option. Did you mean "threshold"?'),
        ({"threshold": "far"}, 'threshold: expected a number or null, got "far".'),
    ],
)
def test_mistakes_are_answered_by_one_line(env_config, line):
    with pytest.raises(OptionError) as error:
        look(ID, env_config)
    assert str(error.value).startswith(f"env_config.{line}") and "\n" not in str(error.value)


def test_what_is_held_back_is_paid_when_time_is_over():
    """A limit that the experiment sets is the environment's own: the rest is not cut off."""
    facts = look(ID, {"robot": "HalfCheetah-v5"}, max_episode_steps=5)
    env = make_single(ID, {"robot": "HalfCheetah-v5"}, facts)
    env.reset(seed=0)
    forward = 0.0
    for step in range(5):
        _, reward, _, truncated, info = env.step(np.ones(6, np.float32))
        forward += info["reward_forward"]
        assert truncated == (step == 4)
        assert reward == pytest.approx(info["reward_ctrl"] + (forward if truncated else 0.0))
    assert forward != 0


def test_the_papers_thresholds():
    for robot, threshold in (("Hopper-v5", 1), ("Walker2d-v5", 1), ("HalfCheetah-v5", 3)):
        assert DelayedControlEnv(robot)._delay._threshold == threshold
