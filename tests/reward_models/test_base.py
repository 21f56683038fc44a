"""What a reward model is that says nothing of itself."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.episodes import Summary
from rllib_conspec.options import Options
from rllib_conspec.reward_models.base import Description, RewardModel, Setting, milestone

SETTING = Setting(spaces.Box(0, 255, (5, 5, 3), np.uint8), spaces.Discrete(2))


class Plain(RewardModel):
    metrics_shown = ("loss", "count", "absent", "nested")


class Named(Plain):
    name = "other"


class Derived(Named):
    pass


def test_its_section_is_called_like_the_class_unless_it_says_otherwise():
    assert (Plain.name, Named.name, Derived.name) == ("plain", "other", "derived")


def test_it_learns_from_every_episode_without_a_label():
    summaries = [Summary(0.0, 3, None)] * 4
    chosen = Plain(Options(), SETTING).choose(summaries, np.random.default_rng(0))
    assert chosen == [(0, None), (1, None), (2, None), (3, None)]


def test_it_fits_everywhere_and_has_nothing_to_tell():
    plain = Plain(Options(), SETTING)
    plain.check()
    assert plain.num_parameters == 0
    assert plain.hints() == []
    assert Plain.describe({}) == Description()
    assert Plain.sizes(Options()) == {} and Plain.presets == {}


def test_the_progress_line_shows_the_numbers_that_it_names():
    metrics = {"loss": 0.123456, "count": 7, "nested": {"loss": 1.0}, "hidden": 2.0}
    assert Plain.cells(metrics) == {"loss": "0.1235", "count": "7"}
    assert Plain.cells({}) == {}


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.update([]),
        lambda m: m.snapshot(),
        lambda m: m.get_state(),
        lambda m: m.set_state({}),
        lambda m: m.load(None),
        lambda m: m.reward([]),
    ],
)
def test_what_every_model_must_write_itself(call):
    with pytest.raises(NotImplementedError):
        call(Plain(Options(), SETTING))


def test_shape_of_a_setting():
    assert SETTING.shape == (5, 5, 3)


@given(st.integers(1, 300), st.integers(0, 10**6))
def test_milestones_double(first, beyond):
    reached = first
    while 2 * reached <= first + beyond:
        reached *= 2
    assert milestone(first + beyond, first) == reached
