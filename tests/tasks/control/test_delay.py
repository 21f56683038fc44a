import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.control.delay import DelayedForward, ForwardDelay

# Eighths: sums of them are exact.
moves = st.lists(st.integers(-16, 16).map(lambda k: k / 8), min_size=1, max_size=60)
thresholds = st.integers(1, 32).map(lambda k: k / 8)


def paid(x, forward, threshold, start=0.0):
    """What is paid on every step of an episode that runs through the places x."""
    delay = ForwardDelay(1, threshold)
    delay.begin(0, start)
    last = len(x) - 1
    return [
        delay.pay(np.array([place]), np.array([earned]), np.array([t == last]))[0]
        for t, (place, earned) in enumerate(zip(x, forward, strict=True))
    ]


@given(moves, thresholds, st.floats(-5, 5), st.randoms(use_true_random=False))
def test_the_sum_is_that_of_the_undelayed_rewards(steps, threshold, start, random):
    forward = [random.uniform(-9, 9) for _ in steps]
    assert sum(paid(start + np.cumsum(steps), forward, threshold, start)) == pytest.approx(
        sum(forward), abs=1e-9
    )


@given(moves, thresholds)
def test_paid_on_the_very_steps_that_pass_the_next_threshold(steps, threshold):
    x = np.cumsum(steps)
    got = paid(x, np.ones(len(x)), threshold)
    reached = 0  # thresholds behind the furthest place so far
    unpaid = 0.0
    for t, place in enumerate(x[:-1]):
        unpaid += 1
        behind = int(np.floor(place / threshold))
        assert got[t] == (unpaid if behind > reached else 0)
        if behind > reached:
            reached, unpaid = behind, 0.0
    assert got[-1] == unpaid + 1


def test_an_example():
    """Thresholds at 1, 2, 3: two are passed in one step; going back and forth pays nothing."""
    x = [0.5, 1.0, 1.5, 0.8, 1.2, 3.2, 2.5, 3.3]
    assert paid(x, [1.0] * 8, 1.0) == [0, 2, 0, 0, 0, 4, 0, 2]


def test_environments_do_not_disturb_each_other():
    delay = ForwardDelay(2, 1.0)
    delay.begin(np.array([True, True]), np.array([0.0, 10.0]))
    nobody = np.zeros(2, dtype=bool)
    np.testing.assert_array_equal(delay.pay(np.array([1.5, 10.5]), np.ones(2), nobody), [1, 0])
    delay.begin(0, 5.0)  # a new episode, of the first one only
    np.testing.assert_array_equal(delay.pay(np.array([5.5, 11.5]), np.ones(2), nobody), [0, 2])
    np.testing.assert_array_equal(delay.pay(np.array([6.0, 11.6]), np.ones(2), nobody), [2, 0])


@pytest.mark.parametrize("threshold", [0, -1.0, float("nan")])
def test_a_threshold_that_could_not_be_passed_is_refused(threshold):
    with pytest.raises(OptionError, match="threshold: must be more than 0 units of x, not"):
        ForwardDelay(1, threshold)


class Runner(gym.Env):
    """Runs by its action, for 5 steps; 1 for being there besides."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,))
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, told=("x_position", "reward_forward")):
        self.told = told

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.time = 0.0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.x += float(action[0])
        self.time += 1
        info = {"x_position": self.x, "reward_forward": 10 * float(action[0])}
        info = {name: info[name] for name in self.told}
        return np.zeros(1, np.float32), 1 + 10 * float(action[0]), False, self.time == 5, info


def rewards(env, actions):
    env.reset()
    return [env.step(np.array([a], np.float32))[1] for a in actions]


def test_any_environment_that_tells_its_x_and_forward_reward():
    env = DelayedForward(Runner(), 1.0)
    for _ in range(2):  # and a new episode begins with nothing held back
        assert rewards(env, [0.5, 0.5, 0.25, -0.25, 0.5]) == [1, 11, 1, 1, 6]


def test_without_a_forward_part_all_is_held_back():
    env = DelayedForward(Runner(told=("x_position",)), 1.0)
    assert rewards(env, [0.5, 0.5, 0.25, -0.25, 0.5]) == [0, 12, 0, 0, 8]


def test_without_x_there_is_one_line():
    with pytest.raises(OptionError, match=r"^env: has no x_position in its infos"):
        rewards(DelayedForward(Runner(told=()), 1.0), [0.5])
