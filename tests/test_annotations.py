# ruff: noqa: UP007, UP045  (RLlib's annotations are in the older style)
from typing import Any, Literal, Optional, Union

import pytest

from rllib_conspec.annotations import expected, fits, show


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (int, [3, -1], [True, 1.5, "3", None]),
        (float, [3, 2.5], [True, "2.5", None]),
        (bool, [True], [1, "true"]),
        (str, ["a"], [1, None]),
        (dict, [{}], [[]]),
        (list[int], [[], [1]], ["a", {}]),
        (Optional[int], [None, 1], ["a", True]),
        (Union[float, list[list[float]]], [1, [[0, 1]]], ["a"]),
        (int | None, [None, 1], ["a"]),
        (Literal["a", "b"], ["a"], ["c"]),
        (Any, [1, "a", None], []),
    ],
)
def test_fits(kind, good, bad):
    assert all(fits(kind, value) for value in good)
    assert not any(fits(kind, value) for value in bad)


def test_types_are_named_as_a_user_would_say_them():
    assert expected([Optional[float]]) == "a number or null"
    assert expected([int, list]) == "a whole number or a list"
    assert show("x") == '"x"' and show(True) == "true" and show(None) == "null"
    assert len(show("x" * 500)) <= 60
