"""Options: every wrong value is answered with an error that names the option."""

from dataclasses import FrozenInstanceError, fields

import builders
import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import options_of
from rllib_conspec.reward_models.conspec.learner import ADAM_EPS
from rllib_conspec.reward_models.conspec.loss import SOFTMAX_SCALE
from rllib_conspec.reward_models.conspec.options import PRESETS, ConSpecOptions

FIELDS = {f.name: f for f in fields(ConSpecOptions)}
WRONG_TYPE = {
    "int": ["3", 2.5, True, None, [1]],
    "float": ["0.1", True, None, [0.1]],
    "bool": [1, 0, "true", None],
    "str": [1, None, True, ["conv"]],
    "int | None": ["3", 2.5, False],
    "str | None": [3, 2.5, False],
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
        least = meta["above"] + step
        assert getattr(ConSpecOptions.from_dict({name: least}), name) == least
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
        ("min_successes", {"min_successes": 17}, "memory_size (16)"),
        ("recruit_start", {"recruit_start": 9}, "num_prototypes (8)"),
    ],
)
def test_impossible_combinations(option, values, says):
    assert says in refused(option, **values)


def test_possible_combinations():
    ConSpecOptions.from_dict({"num_prototypes": 2, "recruit_start": 2})
    ConSpecOptions.from_dict({"memory_size": 32, "memory_batch": 32, "min_successes": 32})


def test_unknown_options_suggest_the_nearest():
    assert 'Did you mean "num_prototypes"?' in refused("num_prototype", num_prototype=3)
    assert 'Did you mean "threshold"?' in refused("treshold", treshold=0.5)
    assert "Did you mean" not in refused("xyzzy", xyzzy=1)


def test_every_option_says_what_it_is():
    for name, f in FIELDS.items():
        assert len(f.metadata["help"]) > 10, name


def test_there_are_few_enough_to_read():
    assert len(FIELDS) <= 40


def test_defaults_are_the_papers():
    """The table of symbols in the paper's appendix, for the multi-key-to-door tasks."""
    o = ConSpecOptions()
    assert (o.num_prototypes, o.encoder_dim, o.projection_dim) == (8, 512, 1010)
    assert (o.form, o.encoder) == ("mixed", "auto")
    assert (o.memory_size, o.memory_batch, o.max_new_successes) == (16, 16, 2)
    assert (o.diversity, o.diversity_coeff, SOFTMAX_SCALE) == ("cosine", 0.2, 100.0)
    assert (o.intrinsic_coeff, o.threshold) == (0.2, 0.6)
    assert (o.freeze_after, o.lr, ADAM_EPS) == (25, 2e-3, 1e-5)
    assert (o.window, o.intrinsic, o.pay_once) == (3, "window", False)
    assert (o.recruit_start, o.steps_per_iteration) == (None, 1)
    assert (o.memory, o.diversity_moves, o.diversity_window) == ("newest", "all", 0)


# --- presets ----------------------------------------------------------------------------------


def test_every_preset_is_valid_and_sets_only_what_differs_from_the_defaults():
    for name, values in PRESETS.items():
        assert options_of("conspec", {}, name) == ConSpecOptions(**values)
        same = {k for k, v in values.items() if v == getattr(ConSpecOptions(), k)}
        assert not same, f"{name} repeats the defaults of {same}"


def test_the_papers_preset_is_the_defaults():
    assert options_of("conspec", {}, "paper") == options_of("conspec", {}) == ConSpecOptions()


def test_few_successes_starts_early_and_compares_within_an_age():
    o = options_of("conspec", {}, "few_successes")
    assert (o.encoder_dim, o.projection_dim, o.weight_decay) == (128, 100, 0.001)
    assert (o.memory, o.memory_size, o.memory_batch, o.successes_needed) == ("ages", 512, 32, 4)
    assert (o.steps_per_iteration, o.freeze_after, o.failure_coeff) == (4, 12, 1.3)
    assert (o.freeze_distinct, o.diversity_moves, o.diversity_window) == (True, "live", 3)
    # What it does not name is the paper's.
    assert (o.num_prototypes, o.lr, o.form) == (8, 2e-3, "mixed")


def test_single_options_are_laid_over_a_preset():
    o = options_of("conspec", {"encoder_dim": 32, "threshold": 0.7}, "few_successes")
    assert (o.encoder_dim, o.threshold, o.projection_dim) == (32, 0.7, 100)


# --- derived values ---------------------------------------------------------------------------


def test_an_option_that_defaults_to_another():
    assert builders.options(memory_size=10, memory_batch=5).successes_needed == 10
    assert builders.options(memory_size=10, memory_batch=5, min_successes=2).successes_needed == 2


def test_round_trip_and_immutability():
    o = builders.options(threshold=0.5, form="code")
    assert ConSpecOptions.from_dict(o.to_dict()) == o
    with pytest.raises(FrozenInstanceError):
        o.threshold = 0.9
