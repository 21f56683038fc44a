"""Ages: pairs of one batch, a sample of all batches, the newest held back."""

import builders
import numpy as np
import pytest
from builders import contents, marked_episode, marked_episodes
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import iterate, new_learner, until

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.ages import HELD_OUT, Ages
from rllib_conspec.reward_models.conspec.contrast import best_matches
from rllib_conspec.reward_models.conspec.fortunes import LATELY
from rllib_conspec.reward_models.conspec.learner import OWN_TIME

AGES = {"memory": "ages", "memory_size": 40, "memory_batch": 8, "min_successes": 4}


def new_ages(seed=0, **values) -> Ages:
    return Ages(builders.options(**(AGES | values)), np.random.default_rng(seed))


def batch(number: int, won: int, lost: int) -> tuple[list[Episode], list[Episode]]:
    """Episodes whose frames say which batch they are of, and whether they succeeded."""
    return tuple(
        [
            builders.episode(np.full((2, 3), [number, k, success], np.uint8), success)
            for k in range(n)
        ]
        for n, success in ((won, True), (lost, False))
    )


def number_of(episode) -> int:
    return int(episode.frames[0, 0])


def numbers(ages) -> list[int]:
    return [number_of(a.successes[0].unpacked()) for a in ages]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
@settings(builders.examples)
def test_the_newest_are_held_back_until_newer_ones_suffice(sizes):
    ages, useful = new_ages(), []
    for number, (won, lost) in enumerate(sizes):
        ages.add(*batch(number, won, lost))
        if won and lost:
            useful.append((number, won, lost))
        # Held back: the shortest run of newest batches with enough of both kinds.
        held = []
        for one in reversed(useful):
            if held and min(sum(h[1] for h in held), sum(h[2] for h in held)) >= HELD_OUT:
                break
            held.insert(0, one)
        assert numbers(ages.held) == [h[0] for h in held]
        assert numbers(ages.known) == [u[0] for u in useful if u not in held]
        assert ages.count == (sum(u[1] for u in useful), sum(u[2] for u in useful))
        enough = all(sum(h[k] for h in held) >= HELD_OUT for k in (1, 2))
        assert bool(ages.held_out()) == enough
    assert ages.seen == (sum(s[0] for s in sizes), sum(s[1] for s in sizes))


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=4), st.integers(0, 99))
@settings(builders.examples)
def test_successes_differ_and_are_compared_with_failures_of_their_own_age(sizes, seed):
    ages = new_ages(seed)
    for number, size in enumerate(sizes):
        ages.add(*batch(number, *size))
    if not ages.known:
        return
    live, frozen = ages.draw([0, 1])
    assert frozen == [] and live.prototypes == (0, 1)
    count = min(8, sum(len(age.successes) for age in ages.known))
    assert len(set(contents(live.successes))) == len(live.successes) == count
    assert all(e.success for e in live.successes)
    assert not any(e.success for e in live.failures)
    size = dict(enumerate(sizes))
    for number in {number_of(e) for e in (*live.successes, *live.failures)}:
        won = sum(number_of(e) == number for e in live.successes)
        lost = sum(number_of(e) == number for e in live.failures)
        # While successes are few, each is compared with several failures.
        assert lost == won * min(8 // count, size[number][1])


def test_a_full_memory_is_a_uniform_sample_of_all_ages():
    kept = np.zeros(40)
    for seed in range(300):
        ages = new_ages(seed, memory_size=10)
        for number in range(42):
            ages.add(*batch(number, 2, 2))
        assert sum(map(len, ages.known)) == 20
        kept[numbers(ages.known)] += 1
    # 5 of 40 are kept: 37.5 expected, standard deviation 5.7.
    assert np.all(np.abs(kept - 37.5) < 25)


def test_a_single_age_larger_than_the_memory_is_kept():
    ages = new_ages(memory_size=1, memory_batch=1, min_successes=1)
    for number in range(5):
        ages.add(*batch(number, 4, 4))
    assert len(ages.known) == 1


def test_frozen_prototypes_learn_from_their_own_ages_and_these_stay_frequent():
    ages = new_ages(memory_size=500)
    for number in range(4):
        ages.add(*batch(number, 4, 4))
    ages.freeze(2)
    for number in range(4, 60):
        ages.add(*batch(number, 4, 4))
    shares = []
    for _ in range(50):
        live, (own,) = ages.draw([0, 1])
        assert own.prototypes == (2,) and len(live.successes) == 8
        assert {number_of(e) for e in (*own.successes, *own.failures)} <= set(range(4))
        # The same objects: their frames are encoded once.
        assert {id(e) for e in own.successes} <= {id(e) for e in live.successes}
        shares.append(len(own.successes))
    assert np.mean(shares) >= 2  # by chance it would be 0.5


def test_a_frozen_prototype_none_of_whose_ages_is_left_is_passed_over():
    ages = new_ages(memory_size=500)
    ages.freeze(0)  # before anything was seen
    for number in range(4):
        ages.add(*batch(number, 4, 4))
    live, frozen = ages.draw([1])
    assert frozen == [] and len(live.successes) == 8


def test_only_so_many_failures_are_judged_against():
    ages = new_ages()
    ages.add(*batch(0, 4, 40))
    ((number, won, lost),) = ages.held_out()
    assert (number, len(won), len(lost)) == (1, 4, 16)


# --- the learner with ages ----------------------------------------------------------------------

LEARNER = AGES | {"num_prototypes": 2, "threshold": 0.4, "freeze_after": 3}


def test_what_only_successes_show_is_found_and_judged_on_what_was_not_learned_from():
    learner, rng = new_learner(**LEARNER), np.random.default_rng(0)
    until(lambda: learner.met.any(), learner, rng)
    learned = contents(e.unpacked() for age in learner.memory.known for e in age.successes)
    held = [e for _, won, _ in learner.memory.held_out() for e in won]
    assert held and not set(contents(held)) & set(learned)
    assert learner.snapshot().pays.tolist() == learner.met.tolist()


def test_memorising_does_not_meet_the_criterion():
    """Nothing tells these successes from failures, so only the memories can be told apart."""
    values = {"lr": 0.02, "threshold": 0.3, "freeze_after": 5, "min_successes": 4}
    by_memory = new_learner(**values, memory_size=8, memory_batch=8)
    by_ages = new_learner(**(AGES | values))
    rng = np.random.default_rng(0)
    for learner in (by_memory, by_ages):
        for _ in range(3):
            lucky = [marked_episode(rng, False) for _ in range(4)]
            learner.add(lucky, [marked_episode(rng, False) for _ in range(8)])
        for _ in range(40):
            learner.step()
    assert by_memory.met.all()
    assert not by_ages.met.any()


def drifting(rng, iteration, drifts):
    """Every episode of later batches shows a second marker: a habit of the policy, not a cause."""
    won, lost = marked_episodes(rng, 1 + iteration, 3)
    if drifts and iteration >= 6:
        habit = np.array([-3.0, 3.0, 3.0, -3.0], dtype=np.float32)
        for e in (*won, *lost):
            e.frames[rng.integers(len(e))] = habit
    return won, lost


def test_what_the_policy_does_now_and_did_not_before_is_no_critical_step():
    learner = new_learner(**(LEARNER | {"memory_size": 400, "diversity_coeff": 0.2}))
    rng = np.random.default_rng(0)
    for iteration in range(40):
        learner.add(*drifting(rng, min(iteration, 12), True))
        learner.step()
    assert learner.met.any()
    new = [drifting(rng, 12, True) for _ in range(10)]
    won, lost = ([e for pair in new for e in pair[k]] for k in (0, 1))
    for i in np.flatnonzero(learner.met):
        best = [best_matches(learner.model, (int(i),), kind, 1).mean() for kind in (won, lost)]
        assert best[0] - best[1] > 0.4


@pytest.mark.parametrize(("won", "stays"), [(8, True), (2, False)])
def test_what_all_match_is_refuted_only_if_the_agent_succeeds_less_often_than_before(won, stays):
    """A policy that always takes a critical step succeeds more; one that lives on pay, less."""
    learner, rng = new_learner(**LEARNER), np.random.default_rng(0)
    until(lambda: learner.met.any(), learner, rng)
    (first, *_) = np.flatnonzero(learner.met)
    assert learner.fortune_at[first].mean == 0.4
    iterate(learner, rng, OWN_TIME)
    for _ in range(2 * LATELY):
        everyone = [marked_episode(rng, True) for _ in range(20)]
        learner.add(everyone[:won], everyone[won:])
        learner.step()
        restored = new_learner(**LEARNER)
        restored.set_state(learner.get_state())
        assert restored.fortunes.lately == learner.fortunes.lately
        assert restored.fortune_at == learner.fortune_at
    assert bool(learner.met[first]) == (int(first) in learner.fortune_at) == stays
    assert learner.snapshot().pays[first] == stays


@pytest.mark.parametrize("late", [False, True])
def test_new_episodes_of_its_own_time_refute_a_frozen_prototype_and_later_ones_do_not(late):
    learner, rng = new_learner(**LEARNER), np.random.default_rng(0)
    until(lambda: learner.met.any(), learner, rng)
    (first, *_) = np.flatnonzero(learner.met)
    assert learner.met_at[first] == learner.batches  # it just did
    if late:
        iterate(learner, rng, OWN_TIME)
        assert learner.met[first]
    # From now on the marker is in failures too.
    for _ in range(3):
        everyone = [marked_episode(rng, True) for _ in range(10)]
        learner.add(everyone[:5], everyone[5:])
        learner.step()
    assert bool(learner.met[first]) == late
    assert (int(first) in learner.memory.frozen) == (int(first) in learner.met_at) == late
    assert learner.snapshot().pays[first] == late
