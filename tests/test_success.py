"""What counts as success."""

import numpy as np
import pytest

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError
from rllib_conspec.success import success_function


def episode(rewards, info=None) -> Episode:
    steps = len(rewards)
    return Episode(
        np.zeros((steps + 1, 4)), np.zeros(steps), np.array(rewards, dtype=float), info=info or {}
    )


@pytest.mark.parametrize(
    ("rewards", "success"), [([0, 0, 1], True), ([0, 0], False), ([1, -1], False), ([-1], False)]
)
def test_sparse(rewards, success):
    assert success_function("sparse")(episode(rewards)) is success


def test_goal_is_what_the_environment_says():
    goal = success_function("goal")
    assert goal(episode([0], {"is_success": np.True_})) is True
    assert goal(episode([5], {"is_success": False})) is False
    with pytest.raises(KeyError, match="is_success"):
        goal(episode([1]))


def test_top_k_cannot_tell_alone():
    assert success_function("top_k")(episode([1])) is None


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user's own files."""
    (tmp_path / "my_success.py").write_text(
        "limit = 3\n\n\ndef long_enough(episode):\n    return len(episode) >= limit\n"
    )
    (tmp_path / "my_broken_success.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_own_function_by_import_path(own_module):
    own = success_function("my_success:long_enough")
    assert own(episode([0, 0, 0])) is True
    assert own(episode([9, 9])) is False


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.at_all:function", "cannot import 'nowhere.at_all:function': No module named"),
        ("my_success:missing", "cannot import 'my_success:missing'"),
        ("my_broken_success:any", "division by zero"),
        ("my_success:limit", "'my_success:limit' is not a function"),
    ],
)
def test_an_own_function_that_is_none(own_module, path, said):
    with pytest.raises(OptionError) as caught:
        success_function(path)
    assert str(caught.value).startswith("success: ") and said in str(caught.value)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(OptionError, match=r'^success: must be sparse, goal, top_k .*"goal"\?$'):
        success_function("gaol")
