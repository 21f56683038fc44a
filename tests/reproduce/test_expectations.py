import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.report.curves import Curve
from rllib_conspec.reproduce.expectations import (
    AGREES,
    DISAGREES,
    UNDECIDED,
    Alike,
    Better,
    Fails,
    Finding,
    Outcome,
    Solves,
    overall,
    quartiles,
)

BUDGET = 1000.0


def run(reached=None, seed=0, ended=True, budget=BUDGET, final=0.2):
    """A run that reaches 0.9 after so many steps, or never."""
    if reached is None:
        return Outcome(seed, Curve(np.array([1.0, budget]), np.array([0.0, final])), ended)
    steps = np.array([reached / 2, reached])
    return Outcome(seed, Curve(steps, np.array([0.1, 0.95])), ended)


def line(*reached, **more):
    return [run(value, seed, **more) for seed, value in enumerate(reached)]


def judge(expectation, threshold=0.9, **lines):
    return expectation.judge(lines, threshold).verdict


steps = st.lists(st.none() | st.floats(2, BUDGET), min_size=3, max_size=7)
kinds = st.sampled_from([Solves("a"), Fails("a"), Better("a", "b"), Alike("a", "b")])


@given(kinds, steps, steps, st.randoms())
def test_the_order_of_seeds_does_not_matter(expectation, a, b, random):
    before = expectation.judge({"a": line(*a), "b": line(*b)}, 0.9)
    random.shuffle(a)
    random.shuffle(b)
    assert expectation.judge({"a": line(*a), "b": line(*b)}, 0.9) == before


@given(steps, steps)
def test_only_one_of_two_can_be_better(a, b):
    one = judge(Better("a", "b"), a=line(*a), b=line(*b))
    other = judge(Better("b", "a"), a=line(*a), b=line(*b))
    assert (one, other) in {(AGREES, DISAGREES), (DISAGREES, AGREES), (UNDECIDED, UNDECIDED)}


@given(st.integers(3, 9))
def test_a_system_that_never_gets_there_counts_as_such(seeds):
    never, fast = line(*[None] * seeds), line(*[100.0] * seeds)
    finding = Solves("a").judge({"a": never}, 0.9)
    assert finding.verdict == DISAGREES and f"0 of {seeds} seeds within 1,000 steps" in finding.text
    assert judge(Fails("a"), a=never) == AGREES
    assert judge(Better("a", "b"), a=fast, b=never) == AGREES
    assert judge(Better("a", "b"), a=never, b=fast) == DISAGREES
    assert judge(Alike("a", "b"), a=fast, b=never) == DISAGREES
    assert judge(Alike("a", "b"), a=never, b=never) == UNDECIDED


def test_never_is_no_slower_than_the_steps_that_were_played():
    late = line(800.0, 900.0, 950.0)
    assert judge(Better("a", "b"), a=late, b=line(None, None, None)) == AGREES
    stopped_early = line(None, None, None, budget=500.0)
    assert judge(Better("a", "b"), a=late, b=stopped_early) == UNDECIDED


@pytest.mark.parametrize(
    "expectation", [Solves("a"), Fails("a"), Better("a", "b"), Alike("a", "b")]
)
def test_few_seeds_and_runs_that_go_on_decide_nothing(expectation):
    whole = line(1.0, 2.0, 3.0)
    two = expectation.judge({"a": whole[:2], "b": whole}, 0.9)
    assert two.verdict == UNDECIDED and "a has 2 seeds, fewer than 3" in two.text
    assert expectation.judge({"b": whole}, 0.9).verdict == UNDECIDED
    running = [*whole[:2], run(seed=2, ended=False)]
    going_on = expectation.judge({"a": running, "b": whole}, 0.9)
    assert going_on.verdict == UNDECIDED and "a: 1 of 3 have not ended" in going_on.text


def test_alike_by_medians_and_quartiles():
    base = line(100.0, 110.0, 120.0)
    assert judge(Alike("a", "b"), a=line(120.0, 150.0, 160.0), b=base) == AGREES
    assert judge(Alike("a", "b"), a=line(110.0, 200.0, 300.0), b=base) == UNDECIDED  # they meet
    assert judge(Alike("a", "b"), a=line(250.0, 300.0, 400.0), b=base) == DISAGREES


def test_returns_are_compared_at_the_end():
    def ends(*values):
        return [run(seed=seed, final=value) for seed, value in enumerate(values)]

    high, low = ends(10.0, 11.0, 12.0), ends(1.0, 2.0, 9.0)
    assert judge(Better("a", "b"), None, a=high, b=low) == AGREES
    assert judge(Better("a", "b"), None, a=low, b=high) == DISAGREES
    assert judge(Better("a", "b"), None, a=high, b=ends(10.5, 10.6, 20.0)) == UNDECIDED
    assert judge(Alike("a", "b"), None, a=high, b=ends(10.5, 10.6, 20.0)) == AGREES
    assert judge(Alike("a", "b"), None, a=high, b=low) == DISAGREES
    assert (
        judge(Alike("a", "b"), None, a=ends(-20.0, -20.0, -20.0), b=ends(0.0, 0.0, 0.0))
        == DISAGREES
    )


def test_quartiles_are_values_that_were_there():
    assert quartiles([3.0, np.inf, 1.0]) == (1.0, 3.0, np.inf)
    assert quartiles([np.inf] * 3) == (np.inf,) * 3


def test_the_verdict_on_a_figure():
    yes, no, open_ = (Finding(verdict, "") for verdict in (AGREES, DISAGREES, UNDECIDED))
    assert overall([yes, yes]) == AGREES
    assert overall([yes, open_]) == UNDECIDED
    assert overall([open_, no, yes]) == DISAGREES
    assert overall([]) == UNDECIDED
