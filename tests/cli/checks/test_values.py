"""Mistakes that can stand at any depth."""

from math import inf, nan

import pytest
from ray import tune

from rllib_conspec.cli.checks.values import check_finite, check_samplers, infinite_options
from rllib_conspec.errors import OptionError


@pytest.mark.parametrize("number", [inf, -inf, nan])
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda x: {"entropy_coeff": x}, "entropy_coeff"),
        (lambda x: {"env_config": {"a": {"b": x}}}, "env_config.a.b"),
        (lambda x: {"lr": [[0, 1e-3], [1000, x]]}, "lr"),
        (lambda x: {"lr": {"grid_search": [1e-3, x]}}, "lr"),
        (lambda x: {"lr": {"choice": [1e-3, x]}}, "lr"),
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
    ("config", "path", "word"),
    [
        ({"lr": {"grid_serach": [1, 2]}}, "lr.grid_serach", "grid_search"),
        ({"lr": {"chioce": [1, 2]}}, "lr.chioce", "choice"),
        ({"lr": {"log_uniform": [1, 2]}}, "lr.log_uniform", "loguniform"),
        (
            {"env_config": {"keys": {"gridsearch": [1]}}},
            "env_config.keys.gridsearch",
            "grid_search",
        ),
        ({"lr": {"grid_search": [{"unifrom": [1]}]}}, "lr.grid_search.unifrom", "uniform"),
    ],
)
def test_a_misspelt_sampler(config, path, word):
    with pytest.raises(OptionError) as raised:
        check_samplers(config)
    assert str(raised.value) == f'{path}: unknown option. Did you mean "{word}"?'


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"m": {"n": {"uniform": [1]}}}, "m.n: uniform needs numbers"),
        ({"m": {"n": {"grid_search": [{"choice": 3}]}}}, "m.n.grid_search: choice needs a list"),
        ({"lr": [[0, {"uniform": [0, 1]}]]}, "lr: a list has a sampler in it; draw whole lists"),
        ({"m": {"n": tune.randn()}}, "m.n: a sampler without bounds"),
    ],
)
def test_samplers_are_checked_at_any_depth(config, message):
    with pytest.raises(OptionError, match=f"^{message}"):
        check_samplers(config)


def test_other_mappings_are_left_alone():
    check_samplers(
        {"env_config": {"grid": 3}, "lr": {"grid_search": [1]}, "model_config": {"search": 1}}
    )
