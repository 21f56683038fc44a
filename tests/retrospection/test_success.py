"""What counts as success, and which episodes of a batch enter the memories."""

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.retrospection.success import (
    EpisodeSummary,
    FinishedEpisode,
    choose,
    judge,
    success_function,
)


def finished(rewards, info=None) -> FinishedEpisode:
    steps = len(rewards)
    return FinishedEpisode(
        np.zeros((steps, 4)), np.zeros(steps), np.array(rewards, dtype=float), info or {}
    )


@pytest.mark.parametrize(
    ("rewards", "success"), [([0, 0, 1], True), ([0, 0], False), ([1, -1], False), ([-1], False)]
)
def test_sparse(rewards, success):
    assert success_function(builders.options(success="sparse"))(finished(rewards)) is success


def test_goal_is_what_the_environment_says():
    goal = success_function(builders.options(success="goal"))
    assert goal(finished([0], {"is_success": np.True_})) is True
    assert goal(finished([5], {"is_success": False})) is False
    with pytest.raises(KeyError, match="is_success"):
        goal(finished([1]))


def test_top_k_cannot_tell_alone():
    assert success_function(builders.options(success="top_k"))(finished([1])) is None


def test_own_function_by_import_path():
    # `builders` is importable by name; the function travels to workers as text only.
    own = success_function(builders.options(success="builders:has_marker"))
    (with_marker,) = builders.marked_episodes(np.random.default_rng(0), 1, 0)
    (without,) = builders.marked_episodes(np.random.default_rng(0), 0, 1)
    for episode, expected in ((with_marker, True), (without, False)):
        steps = len(episode)
        seen = FinishedEpisode(episode.frames, np.zeros(steps), np.zeros(steps), {})
        assert own(seen) is expected


TOP_K = {k: builders.options(success="top_k", success_top_k=k) for k in range(1, 7)}
LIMITS = {
    (max_new, kept): builders.options(
        max_new_successes=max_new, memory_size=8, memory_batch=1, failure_memory_size=kept
    )
    for max_new in (1, 2, 5)
    for kept in (1, 4, 8)
}


def summaries(flags, returns=None):
    returns = [float(bool(f)) for f in flags] if returns is None else returns
    return [EpisodeSummary(r, 10, f) for f, r in zip(flags, returns, strict=True)]


@given(st.lists(st.booleans(), max_size=30), st.sampled_from(sorted(LIMITS)), st.integers(0, 99))
@settings(builders.examples)
def test_choose_keeps_within_both_limits(flags, limits, seed):
    max_new, kept = limits
    o = LIMITS[limits]
    chosen = choose(summaries(flags), o, np.random.default_rng(seed))
    positions = [i for i, _ in chosen]
    assert positions == sorted(set(positions))
    assert all(flags[i] == success for i, success in chosen)
    assert sum(s for _, s in chosen) == min(max_new, sum(flags))
    assert sum(not s for _, s in chosen) == min(kept, len(flags) - sum(flags))
    assert all(type(i) is int and type(s) is bool for i, s in chosen)


def test_which_successes_are_chosen_is_random():
    o = builders.options(max_new_successes=2)
    rng = np.random.default_rng(0)
    batch = summaries([True] * 6)
    picked = [i for _ in range(600) for i, _ in choose(batch, o, rng)]
    assert np.all(np.abs(np.bincount(picked, minlength=6) - 200) < 60)


def test_which_failures_are_chosen_is_random():
    o = builders.options(memory_size=2, memory_batch=2)
    rng = np.random.default_rng(0)
    picked = [i for _ in range(600) for i, _ in choose(summaries([False] * 6), o, rng)]
    assert np.all(np.abs(np.bincount(picked, minlength=6) - 200) < 60)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.integers(1, 6))
@settings(builders.examples)
def test_top_k_are_the_best_of_the_batch(returns, k):
    o = TOP_K[k]
    success = judge(summaries([None] * len(returns), returns), o)
    assert success.sum() == min(k, len(returns))
    won = [r for r, s in zip(returns, success, strict=True) if s]
    lost = [r for r, s in zip(returns, success, strict=True) if not s]
    assert not lost or min(won) >= max(lost)


def test_top_k_successes_beyond_the_limit_do_not_become_failures():
    o = builders.options(success="top_k", success_top_k=4, max_new_successes=1)
    batch = summaries([None] * 6, [5, 4, 3, 2, 1, 0])
    chosen = choose(batch, o, np.random.default_rng(0))
    assert [i for i, s in chosen if not s] == [4, 5]
    assert len([i for i, s in chosen if s]) == 1


def test_other_kinds_of_success_do_not_look_at_the_return():
    o = builders.options(success="goal")
    assert judge(summaries([False, True], [9.0, -9.0]), o).tolist() == [False, True]


def test_an_empty_batch_gives_nothing():
    assert choose([], builders.options(), np.random.default_rng(0)) == []
