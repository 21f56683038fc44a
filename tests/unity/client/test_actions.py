import numpy as np
import pytest
from gymnasium import spaces
from mlagents_envs.base_env import ActionSpec

from rllib_conspec.unity.client.actions import Actions


def sent(messages):
    return [(list(m.continuous_actions), list(m.discrete_actions)) for m in messages]


def test_one_branch_is_a_discrete_space():
    actions = Actions(ActionSpec(0, (4,)))
    assert actions.space == spaces.Discrete(4)
    assert sent(actions.messages(np.array([3, 0]), 2)) == [([], [3]), ([], [0])]
    assert sent([actions.nothing]) == [([], [0])]


def test_several_branches_are_a_multi_discrete_space():
    actions = Actions(ActionSpec(0, (3, 2)))
    assert actions.space == spaces.MultiDiscrete([3, 2])
    assert sent(actions.messages([[2, 1], [0, 1]], 2)) == [([], [2, 1]), ([], [0, 1])]


def test_continuous_actions_run_from_minus_one_to_one():
    actions = Actions(ActionSpec(2, ()))
    assert actions.space == spaces.Box(-1, 1, (2,), np.float32)
    assert sent(actions.messages([[0.5, -7]], 1)) == [([0.5, -1.0], [])]


def test_both_kinds_together_are_a_dict():
    actions = Actions(ActionSpec(1, (5,)))
    assert set(actions.space) == {"continuous", "discrete"}
    given = {"continuous": np.array([[0.25]]), "discrete": np.array([4])}
    assert sent(actions.messages(given, 1)) == [([0.25], [4])]
    assert list(actions.messages(given, 1)[0].vector_actions_deprecated) == [0.25, 4.0]


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        (ActionSpec(0, (4,)), [4]),
        (ActionSpec(0, (4,)), [-1]),
        (ActionSpec(0, (3, 2)), [[2, 2]]),
        (ActionSpec(0, (3, 2)), [[2]]),
        (ActionSpec(2, ()), [[0.0]]),
        (ActionSpec(2, ()), [[0.0, np.nan]]),
    ],
)
def test_impossible_actions_are_refused(spec, wrong):
    with pytest.raises(ValueError, match="actions must be"):
        Actions(spec).messages(wrong, 1)
