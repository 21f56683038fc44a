"""Mistakes that can stand at any depth."""

from math import inf, nan

import pytest

from rllib_conspec.cli.checks.values import check_finite, check_grids, infinite_options
from rllib_conspec.errors import OptionError


@pytest.mark.parametrize("number", [inf, -inf, nan])
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda x: {"entropy_coeff": x}, "entropy_coeff"),
        (lambda x: {"env_config": {"a": {"b": x}}}, "env_config.a.b"),
        (lambda x: {"lr": [[0, 1e-3], [1000, x]]}, "lr"),
        (lambda x: {"lr": {"grid_search": [1e-3, x]}}, "lr"),
        (lambda x: {"reward_models": {"some": {"scale": x}}}, "reward_models.some.scale"),
    ],
)
def test_a_number_that_is_not_finite_is_found_at_any_depth(number, wrap, path):
    check_finite(wrap(1.0))
    with pytest.raises(OptionError) as raised:
        check_finite(wrap(number))
    assert str(raised.value) == f"{path}: must be a finite number, not {number}."


def test_infinity_stays_where_it_is_the_default():
    limit = {"limit": inf, "lr": 0.1, "nested": {"limit": inf}}
    assert infinite_options(limit) == ["limit", "nested.limit"]
    check_finite(limit, infinite_options(limit))
    check_finite({"vf_clip_param": inf})
    check_finite({"vf_clip_param": {"grid_search": [10, inf]}})
    for value in (-inf, nan):
        with pytest.raises(OptionError):
            check_finite({"limit": value}, ["limit"])


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"lr": {"grid_serach": [1, 2]}}, "lr.grid_serach"),
        ({"env_config": {"keys": {"gridsearch": [1, 2]}}}, "env_config.keys.gridsearch"),
        ({"lr": {"grid_search": [{"grid_saerch": [1]}]}}, "lr.grid_search.grid_saerch"),
    ],
)
def test_a_misspelt_grid_search(config, path):
    with pytest.raises(OptionError) as raised:
        check_grids(config)
    assert str(raised.value) == f'{path}: unknown option. Did you mean "grid_search"?'


def test_other_mappings_are_left_alone():
    check_grids(
        {"env_config": {"grid": 3}, "lr": {"grid_search": [1]}, "model_config": {"search": 1}}
    )
