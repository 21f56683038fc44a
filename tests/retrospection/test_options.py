"""Options: every wrong value is answered with an error that names the option."""

from dataclasses import FrozenInstanceError, fields

import builders
import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.retrospection.options import ConSpecOptions

FIELDS = {f.name: f for f in fields(ConSpecOptions)}
WRONG_TYPE = {
    "int": ["3", 2.5, True, None, [1]],
    "float": ["0.1", True, None, [0.1]],
    "bool": [1, 0, "true", None],
    "str": [1, None, True, ["conv"]],
    "int | None": ["3", 2.5, False],
}


def refused(option, **values) -> str:
    """The message with which these values are refused because of `option`."""
    with pytest.raises(OptionError) as error:
        ConSpecOptions.from_dict(values)
    assert error.value.option == option
    assert str(error.value).startswith(option)
    return error.value.message


@pytest.mark.parametrize("name", FIELDS)
def test_wrong_types_are_refused_by_name(name):
    for value in WRONG_TYPE[FIELDS[name].type]:
        assert repr(value) in refused(name, **{name: value})


@pytest.mark.parametrize("name", [n for n, f in FIELDS.items() if f.metadata["choices"]])
def test_choices(name):
    choices = FIELDS[name].metadata["choices"]
    message = refused(name, **{name: "nonsense"})
    assert all(choice in message for choice in choices)
    assert f'Did you mean "{choices[0]}"?' in refused(name, **{name: choices[0] + "x"})
    for choice in choices:
        assert getattr(ConSpecOptions.from_dict({name: choice}), name) == choice


@pytest.mark.parametrize("name", [n for n, f in FIELDS.items() if f.type.startswith(("int", "fl"))])
def test_limits(name):
    """Every number has a lowest possible value, and what lies below is refused."""
    meta = FIELDS[name].metadata
    assert ("min" in meta) != ("above" in meta)
    step = 1 if FIELDS[name].type.startswith("int") else 1e-9
    if "min" in meta:
        assert str(meta["min"]) in refused(name, **{name: meta["min"] - step})
    else:
        refused(name, **{name: meta["above"]})
        getattr(ConSpecOptions.from_dict({name: meta["above"] + step}), name)
    if "max" in meta:
        refused(name, **{name: meta["max"] + step})
        assert getattr(ConSpecOptions.from_dict({name: meta["max"]}), name) == meta["max"]


@pytest.mark.parametrize("name", [n for n, f in FIELDS.items() if f.type == "float"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_must_be_finite(name, value):
    refused(name, **{name: value})


def test_whole_numbers_pass_for_numbers():
    assert ConSpecOptions.from_dict({"intrinsic_coeff": 1}).intrinsic_coeff == 1


@pytest.mark.parametrize(
    ("option", "values", "says"),
    [
        ("memory_batch", {"memory_batch": 17}, "memory_size (16)"),
        ("memory_batch", {"memory_size": 4}, "memory_size (4)"),
        ("failure_batch", {"failure_batch": 17}, "(16)"),
        ("failure_batch", {"failure_memory_size": 8, "failure_batch": 9}, "(8)"),
        ("min_successes", {"min_successes": 17}, "memory_size (16)"),
        ("recruit_start", {"recruit": True, "recruit_start": 9}, "num_prototypes (8)"),
        ("recruit_start", {"recruit": True, "num_prototypes": 2}, "num_prototypes (2)"),
    ],
)
def test_impossible_combinations(option, values, says):
    assert says in refused(option, **values)


def test_possible_combinations():
    ConSpecOptions.from_dict({"num_prototypes": 2})  # recruit_start does not matter
    ConSpecOptions.from_dict({"memory_size": 32, "failure_memory_size": 64, "failure_batch": 64})


def test_unknown_options_suggest_the_nearest():
    assert 'Did you mean "num_prototypes"?' in refused("num_prototype", num_prototype=3)
    assert 'Did you mean "threshold"?' in refused("treshold", treshold=0.5)
    assert "Did you mean" not in refused("xyzzy", xyzzy=1)


@pytest.mark.parametrize(
    "path",
    [
        "no_such_module_at_all:f",
        "builders:no_such_function",
        "builders:MARKER",  # not callable
        "builders:",
        ":has_marker",
        ".builders:has_marker",
    ],
)
def test_success_functions_that_cannot_be_used(path):
    refused("success", success=path)


def test_paying_once_is_for_the_window_form():
    refused("pay_once", pay_once=True, intrinsic="potential")


def test_success_by_name_or_import_path():
    for name in ("sparse", "top_k", "goal", "builders:has_marker"):
        assert ConSpecOptions.from_dict({"success": name}).success == name
    assert 'Did you mean "sparse"?' in refused("success", success="sparce")


def test_every_option_says_what_it_is():
    for name, f in FIELDS.items():
        assert len(f.metadata["help"]) > 10, name


def test_defaults_are_the_papers():
    """The table of symbols in the paper's appendix, for the multi-key-to-door tasks."""
    o = ConSpecOptions()
    assert (o.num_prototypes, o.projection_dim, o.encoder) == (8, 1010, "conv")
    assert (o.projection_relu, o.projection) == ("between", "per_prototype")
    assert (o.memory_size, o.memory_batch, o.max_new_successes) == (16, 16, 2)
    assert (o.diversity_coeff, o.loss_coeff, o.softmax_scale) == (0.2, 1.0, 100.0)
    assert (o.intrinsic_coeff, o.task_reward, o.threshold) == (0.2, 1.0, 0.6)
    assert (o.freeze_after, o.lr, o.adam_eps) == (25, 2e-3, 1e-5)
    assert (o.window, o.intrinsic, o.pay, o.remove_repeats) == (3, "window", "frozen", True)
    assert (o.pay_once, o.failure_share) == (False, 1.0)
    assert (o.recruit, o.recruit_start, o.steps_per_iteration) == (False, 3, 1)


def test_options_that_default_to_another():
    o = builders.options(memory_size=10, memory_batch=5)
    assert (o.failures_kept, o.failures_drawn, o.successes_needed) == (10, 5, 10)
    o = builders.options(
        memory_size=10, memory_batch=5, failure_memory_size=7, failure_batch=6, min_successes=2
    )
    assert (o.failures_kept, o.failures_drawn, o.successes_needed) == (7, 6, 2)


def test_round_trip_and_immutability():
    o = builders.options(threshold=0.5, success="top_k")
    assert ConSpecOptions.from_dict(o.to_dict()) == o
    with pytest.raises(FrozenInstanceError):
        o.threshold = 0.9
