"""Verdicts: within an age, against a plain count, and what they are sure of."""

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec.judging import Verdict

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
