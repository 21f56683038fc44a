"""Values that differ between trials: what they may be, and what Tune makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune

from rllib_conspec.cli.checks.space import (
    RANGES,
    cases,
    combinations,
    covering,
    for_tune,
    grid_size,
    may_be,
    possible,
    varied,
)
from rllib_conspec.errors import OptionError

NUMBERS = st.integers(1, 50)


@st.composite
def samplers(draw):
    """Any sampler, as a file has it."""
    word = draw(st.sampled_from(["choice", *RANGES]))
    if word == "choice":
        return {word: draw(st.lists(st.one_of(NUMBERS, st.text(max_size=3)), min_size=1))}
    low = draw(NUMBERS)
    ends = [low, low + draw(NUMBERS)]
    return {word: [*ends, 0.5] if RANGES[word].step else ends}


@given(samplers(), st.integers(0, 2**31))
def test_what_tune_draws_lies_between_what_was_checked(sampler, seed):
    (value,) = [for_tune({"x": sampler})["x"].sample(random_state=np.random.RandomState(seed))]
    ends = possible("x", sampler)
    assert may_be(sampler, value)
    assert value in ends if "choice" in sampler else min(ends) <= value <= max(ends)


@given(samplers())
def test_a_sampler_of_python_is_the_same_as_that_of_the_file(sampler):
    assert possible("x", for_tune(sampler)) == possible("x", sampler)


@given(st.dictionaries(st.sampled_from("abc"), st.one_of(samplers(), NUMBERS), min_size=1))
def test_every_value_is_among_the_cases(config):
    found = cases({"nested": config, "fixed": 1}, most=4)
    for key, sampler in config.items():
        for value in possible(key, sampler):
            assert any(case["nested"][key] == value for case in found)
    for case in found:
        assert case["fixed"] == 1 and may_be(config, case["nested"])


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ({"choice": 3}, "choice needs a list of values, got 3."),
        ({"choice": []}, "choice needs a list of values, got []."),
        ({"choice": [1, {"uniform": [0, 1]}]}, "choice has another choice in it"),
        ({"uniform": [0]}, "uniform needs numbers [lowest, highest], got [0]."),
        ({"uniform": ["a", 1]}, "uniform needs numbers [lowest, highest]"),
        ({"uniform": [0, float("inf")]}, "uniform needs numbers [lowest, highest]"),
        ({"uniform": [2, 1]}, "uniform goes from 2 to 1: nothing between."),
        ({"quniform": [0, 1]}, "quniform needs numbers [lowest, highest, step], got [0, 1]."),
        ({"quniform": [0, 1, 0]}, "quniform needs a step above 0"),
        ({"loguniform": [0, 1]}, "loguniform needs numbers above 0, got 0."),
        ({"randint": [1, 2.5]}, "randint needs whole numbers [lowest, highest]"),
        (tune.randn(0, 1), "a sampler without bounds cannot be checked; use uniform."),
        (tune.sample_from(lambda spec: 3), "a function cannot be checked before it is called"),
    ],
)
def test_a_sampler_that_makes_no_sense(sampler, message):
    with pytest.raises(OptionError) as raised:
        possible("lr", sampler)
    assert raised.value.option == "lr" and raised.value.message.startswith(message)


def test_the_upper_end_of_whole_numbers_is_left_out():
    assert possible("n", {"randint": [1, 4]}) == [1, 3]
    assert possible("n", tune.randint(1, 4)) == [1, 3]
    assert possible("n", tune.qrandint(2, 8, 2)) == [2, 8]
    assert possible("x", tune.quniform(0, 1, 0.25)) == [0, 1]


def test_every_combination_of_a_grid():
    grid = {"grid_search": [1, 2]}
    settings = {"a": grid, "b": {"c": {"grid_search": [3, 4]}, "d": 5}}
    found = list(combinations(settings))
    assert len(found) == 4 == grid_size(settings)
    assert {"a": 2, "b": {"c": 3, "d": 5}} in found
    assert covering(settings) == [{"a": i, "b": {"c": i + 2, "d": 5}} for i in (1, 2)]
    assert len(cases(settings, most=64)) == 4 and len(cases(settings, most=1)) == 2


def test_what_a_trial_can_have_had():
    config = {"lr": {"loguniform": [0.1, 1]}, "m": {"n": {"grid_search": [1, 2]}}, "seed": 0}
    assert may_be(config, {"lr": 0.5, "m": {"n": 2}, "seed": 0})
    for other in ({"lr": 2.0}, {"m": {"n": 3}}, {"seed": 1}, {"m": {}}, {"lr": "fast"}):
        assert not may_be(config, {"lr": 0.5, "m": {"n": 2}, "seed": 0} | other)
    assert may_be({"choice": [{"a": 1}, None]}, {"a": 1})
    assert not may_be({"randint": [1, 5]}, 5)


def test_tune_gets_everything_else_as_it_is():
    lr, fixed = tune.uniform(0, 1), {"a": [1]}
    made = for_tune({"lr": lr, "fixed": fixed, "m": {"n": {"choice": [1]}, "k": fixed}})
    assert made["lr"] is lr and made["fixed"] is fixed and made["m"]["k"] is fixed
    assert made["m"]["n"].categories == [1]


def test_what_differs_by_its_path():
    lr = tune.uniform(0, 1)
    config = {"lr": lr, "m": {"n": {"choice": [1]}, "k": 3}, "seed": {"grid_search": [1]}}
    assert varied(config) == {
        ("lr",): lr,
        ("m", "n"): {"choice": [1]},
        ("seed",): {"grid_search": [1]},
    }
