"""Verdicts: within an age, against a plain count, and what they are sure of."""

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec.judging import TOGETHER, Judged, Verdict

matches = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=5)


@given(st.lists(st.tuples(matches, matches), min_size=1, max_size=4))
@settings(builders.examples)
def test_a_verdict_is_the_mean_of_each_success_against_the_failures_of_its_age(ages):
    found = Verdict.of([np.array([won]) for won, _ in ages], [np.array([lost]) for _, lost in ages])
    gaps = [w - sum(lost) / len(lost) for won, lost in ages for w in won]
    every = [f for _, lost in ages for f in lost]
    assert found.separation[0] == pytest.approx(sum(gaps) / len(gaps), abs=1e-6)
    variance = np.var(gaps) / len(gaps) + np.var(every) / len(every)
    assert found.error[0] == pytest.approx(variance**0.5, abs=1e-5)
    assert found.match[0] == pytest.approx(np.mean([w for won, _ in ages for w in won]), abs=1e-6)
    assert found.successes == len(gaps)


def test_what_tells_ages_apart_tells_nothing():
    """All of the second age match, failures too: across ages that looks like 0.6."""
    won = [np.zeros((1, 1)), np.ones((1, 9))]
    lost = [np.zeros((1, 9)), np.ones((1, 4))]
    assert np.concatenate(won, 1).mean() - np.concatenate(lost, 1).mean() > 0.5
    assert Verdict.of(won, lost).separation[0] == 0


@pytest.mark.parametrize(
    ("won", "lost", "reached", "refuted"),
    [
        ([1.0] * 4, [0.0] * 8, True, False),
        ([1.0] * 4, [1.0] * 3 + [0.0] * 5, False, False),  # 0.62, but too unsure
        ([1.0] * 40, [1.0] * 30 + [0.0] * 50, True, False),  # the same, surer
        ([0.4] * 4, [-0.5] * 8, False, False),  # apart, but no match
        ([0.5] * 4, [0.5] * 8, False, True),
        ([1.0, 0.0, 1.0, 0.0], [0.5] * 8, False, False),  # nothing, but unsure
    ],
)
def test_criterion_and_refutation(won, lost, reached, refuted):
    verdict = Verdict.of([np.array([won])], [np.array([lost])])
    assert (bool(verdict.reaches(0.5)[0]), bool(verdict.refutes(0.5)[0])) == (reached, refuted)


def test_verdicts_of_the_last_iterations_are_taken_together():
    """By hand: the newest look at every age, those of `TOGETHER` iterations."""
    rng, judged, seen = np.random.default_rng(0), Judged(), {}
    for iteration in range(20):
        # One new age, and the one before is judged once more.
        ages = [n for n in (iteration, iteration + 1) if n]
        won, lost = ([rng.random((3, rng.integers(1, 5))) for _ in ages] for _ in "wl")
        judged.note((), ages, won, lost)
        seen |= {n: (iteration, w, f) for n, w, f in zip(ages, won, lost, strict=True)}
        last = [(w, f) for when, w, f in seen.values() if when > iteration - TOGETHER]
        expected = Verdict.of(*zip(*last, strict=True))
        np.testing.assert_allclose(judged.verdict().separation, expected.separation)
        np.testing.assert_allclose(judged.verdict().error, expected.error)
        assert judged.verdict().successes == expected.successes
    only = judged.verdict(19, 20)
    assert only.successes == seen[19][1].shape[1] + seen[20][1].shape[1]
    assert judged.verdict(21) is None and Judged().verdict() is None


def test_what_one_batch_is_too_small_for_several_show():
    """True in 8 of 10 successes and 2 of 10 failures: 0.6, in any batch of 8 too unsure."""
    rng, judged, single, together = np.random.default_rng(1), Judged(), 0, 0
    for number in range(200):
        won, lost = (rng.random((1, 8)) < p for p in (0.8, 0.2))
        judged.note((), [number], [won.astype(float)], [lost.astype(float)])
        single += bool(Verdict.of([won], [lost]).reaches(0.4)[0])
        together += bool(judged.verdict().reaches(0.4)[0])
    assert single < 130
    assert together > 180


def test_matches_under_other_claims_are_forgotten():
    judged, ones, zeros = Judged(), np.ones((2, 4)), np.zeros((2, 4))
    judged.note([((0,), (1,))], [1], [ones], [zeros])
    judged.note([((0,), (1,))], [2], [zeros], [zeros])
    assert judged.verdict().separation[0] == 0.5
    judged.note([], [3], [zeros], [zeros])
    assert judged.verdict().separation[0] == 0
    judged.note([], [4], [np.ones((3, 4))], [np.zeros((3, 4))])  # one was recruited
    assert judged.verdict().successes == 4
    assert judged.verdict(1, 3) is None


def test_a_saved_record_goes_on_alike():
    rng, judged = np.random.default_rng(0), Judged()
    for number in range(4):
        judged.note((), [number], [rng.random((1, 3))], [rng.random((1, 3))])
    twin = Judged()
    twin.set_state(judged.get_state())
    for number in range(4, 8):
        won, lost = [rng.random((1, 3))], [rng.random((1, 3))]
        for one in (judged, twin):
            one.note((), [number], won, lost)
        assert twin.verdict().separation == judged.verdict().separation
        assert twin.verdict().successes == judged.verdict().successes
