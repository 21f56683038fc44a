"""Intrinsic rewards, against the literal formulas and by hand."""

import builders
import literal
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec.rewards import (
    potential_reward,
    thresholded,
    window_reward,
    without_repeats,
)


@st.composite
def scores(draw) -> np.ndarray:
    """s [H, T] with plateaus and exact ties, also at the threshold."""
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 25)))
    s = np.random.default_rng(draw(st.integers(0, 10_000))).uniform(-0.2, 1, shape)
    return s.round(1) if draw(st.booleans()) else s


THRESHOLDS = st.sampled_from([0.0, 0.3, 0.6, 1.0])


@given(scores(), THRESHOLDS, st.sampled_from([0, 1, 3, 40]), st.booleans(), st.booleans())
@settings(builders.examples, max_examples=300)
def test_window_reward_is_the_formula(s, threshold, window, remove_repeats, large):
    scale = 10.0 if large else 0.2
    found = window_reward(
        s, scale=scale, threshold=threshold, window=window, remove_repeats=remove_repeats
    )
    expected = literal.window_reward(s.tolist(), scale, threshold, window, remove_repeats)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(scores(), THRESHOLDS)
@settings(builders.examples, max_examples=200)
def test_paying_once_is_the_formula(s, threshold):
    found = window_reward(
        s, scale=0.2, threshold=threshold, window=3, remove_repeats=True, once=True
    )
    np.testing.assert_allclose(found, literal.once_reward(s.tolist(), 0.2, threshold), atol=1e-12)


@given(scores(), THRESHOLDS, st.sampled_from([0.0, 0.9, 0.99, 1.0]))
@settings(builders.examples, max_examples=200)
def test_potential_reward_is_the_formula(s, threshold, gamma):
    found = potential_reward(s, scale=0.5, threshold=threshold, gamma=gamma)
    expected = literal.potential_reward(s.tolist(), 0.5, threshold, gamma)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_threshold_itself_pays_nothing():
    assert thresholded(np.array([0.59, 0.6, 0.61, -0.9]), 0.6).tolist() == [0, 0, 0.61, 0]


def paid(s, **changes):
    given_options = {"scale": 1.0, "threshold": 0.6, "window": 3, "remove_repeats": True} | changes
    return window_reward(np.array([s]), **given_options).tolist()


def test_only_the_highest_of_seven_steps_pays():
    assert paid([0, 0.7, 0, 0.9, 0, 0.8, 0, 0]) == [0, 0, 0, 0.9, 0, 0, 0, 0]
    # Four steps away is outside of the window.
    assert paid([0.7, 0, 0, 0, 0.9]) == [0.7, 0, 0, 0, 0.9]
    assert paid([0.7, 0, 0, 0.9]) == [0, 0, 0, 0.9]


def test_repeats_are_taken_away():
    assert paid([0.8, 0.8, 0, 0], remove_repeats=False) == [0.8, 0.8, 0, 0]
    assert paid([0.8, 0.8, 0, 0]) == [0.8, 0, 0, 0]
    # Half of it two steps later, a quarter three steps later, and then it is forgotten.
    kept = without_repeats(np.array([[0.8, 0.0, 0.8, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.8]]))[0]
    assert kept == pytest.approx([0.8, 0, 0.4, 0, 0, 0.6, 0, 0, 0, 0.8])


def test_a_plateau_pays_once_and_not_again_and_again():
    """What is taken away is what eqn 2 paid. Were it what was kept of that, a step that lost all
    would cost later ones nothing, and staying on the plateau would earn 2.68.
    """
    reward = window_reward(
        np.full((1, 40), 0.9), scale=0.2, threshold=0.6, window=3, remove_repeats=True
    )
    assert reward[0] == pytest.approx(0.18)
    assert (reward[1:] == 0).all()


def test_paying_once_pays_the_first_of_the_best_steps():
    assert paid([0.7, 0, 0, 0, 0, 0.9, 0, 0, 0, 0, 0.9], once=True) == [0] * 5 + [0.9] + [0] * 5
    assert paid([0.5, 0.6], once=True) == [0, 0]


def test_prototypes_add_up_and_do_not_compete():
    s = np.array([[0, 0.7, 0, 0], [0, 0, 0.9, 0]])
    both = window_reward(s, scale=2.0, threshold=0.6, window=3, remove_repeats=True)
    assert both == pytest.approx([0, 1.4, 1.8, 0])


@given(scores())
@settings(builders.examples)
def test_potential_rewards_sum_to_the_last_potential_without_discount(s):
    reward = potential_reward(s, scale=1.0, threshold=0.3, gamma=1.0)
    assert reward.sum() == pytest.approx(thresholded(s[:, -1], 0.3).sum(), abs=1e-9)
