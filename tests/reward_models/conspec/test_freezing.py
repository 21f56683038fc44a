"""Freezing: when a prototype gets exemplars of its own, and what it does with them."""

import copy

import builders
import literal
import numpy as np
import pytest
import torch
from builders import marked_episodes
from learners import checksum, iterate, new_learner, until, weights

from rllib_conspec.reward_models.conspec import learner as learner_module
from rllib_conspec.reward_models.conspec.contrast import best_matches


def test_a_prototype_freezes_after_exactly_so_many_steps_above_the_criterion():
    """The learner's bookkeeping against a plain one, while the task changes under it."""
    learner = new_learner(seed=3, num_prototypes=4, threshold=0.4, freeze_after=5)
    o, rng = learner.options, np.random.default_rng(3)
    streak, exemplars, broken = [0] * 4, {}, 0
    for iteration in range(50):
        won, lost = marked_episodes(rng, 2, 2)
        # Every sixth batch calls successes what are none.
        learner.add(*((lost, []) if iteration % 6 == 5 else (won, lost)))
        memories = tuple(learner.memory.successes), tuple(learner.memory.failures)
        before = copy.deepcopy(learner.model)
        learner.step()
        if len(memories[0]) < o.memory_size:
            continue
        for i in range(4):
            best = [best_matches(before, (i,), e, 1)[0] for e in exemplars.get(i, memories)]
            if i in exemplars:
                continue
            met = literal.meets_criterion(*[list(b) for b in best], o.threshold)
            broken += not met and streak[i] > 0
            streak[i] = streak[i] + 1 if met else 0
            assert learner.streak[i] == streak[i]
            if streak[i] == o.freeze_after:
                exemplars[i] = memories
        assert set(np.flatnonzero(learner.met)) == set(exemplars)
        assert learner.memory.exemplars.keys() == exemplars.keys()
        for i, (won, lost) in exemplars.items():
            assert learner.memory.exemplars[i].successes == won
            assert learner.memory.exemplars[i].failures == lost
    assert broken >= 1  # the test saw a streak that was reset
    # And more than one time of freezing.
    assert len({id(won) for won, _ in exemplars.values()}) >= 2


def test_a_streak_that_is_long_enough_counts_though_the_iteration_goes_on(monkeypatch):
    """Freezing depends on gradient steps, not on how many of them an iteration has."""
    seen_broken = False
    monkeypatch.setattr(learner_module, "CANDIDATES", 8)  # all: the steps are then the same
    for seed in range(8):
        # Without exemplars, so that freezing itself changes nothing in what follows.
        values = {"num_prototypes": 4, "freeze_after": 2, "lr": 0.1, "freeze": False}
        many = new_learner(seed=seed, steps_per_iteration=6, **values)
        single = new_learner(seed=seed, **values)
        new = marked_episodes(np.random.default_rng(seed), 4, 4)
        many.add(*new)
        single.add(*new)
        many.step()
        for _ in range(6):
            single.step()
        seen_broken |= bool((single.met & (single.streak < 2)).any())
        assert many.met.tolist() == single.met.tolist()
    assert seen_broken


def test_exemplars_never_change():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    until(lambda: len(learner.memory.exemplars) == 2, learner, rng)

    def held():
        return {i: (checksum(e.successes), checksum(e.failures)) for i, e in own().items()}

    def own():
        return dict(learner.memory.exemplars)

    before, objects = held(), {i: (e.successes, e.failures) for i, e in own().items()}
    iterate(learner, rng, 10)
    assert held() == before
    assert {i: (e.successes, e.failures) for i, e in own().items()} == objects
    assert checksum(learner.memory.successes) not in {s for s, _ in before.values()}


@pytest.mark.parametrize("form", builders.FORMS)
def test_live_prototypes_learn_from_the_memories_and_frozen_ones_from_their_exemplars(form):
    learner, rng = new_learner(recruit_start=1, form=form), np.random.default_rng(0)
    until(lambda: learner.memory.exemplars, learner, rng)
    iterate(learner, rng, 1)
    learner.add(*marked_episodes(rng, 2, 3))
    assert (learner.active, list(learner.memory.exemplars)) == (2, [0])
    expected = literal.loss(
        copy.deepcopy(learner.model).double(),
        learner.options,
        2,
        (tuple(learner.memory.successes), tuple(learner.memory.failures)),
        {i: (e.successes, e.failures) for i, e in learner.memory.exemplars.items()},
    )
    metrics = learner.step()
    for name in ("success", "failure", "diversity"):
        assert metrics[f"loss_{name}"] == pytest.approx(getattr(expected, name).item(), abs=1e-4)


def test_frozen_prototypes_keep_training():
    learner, rng = new_learner(num_prototypes=1), np.random.default_rng(0)
    until(lambda: learner.memory.exemplars, learner, rng)
    before = weights(learner)
    learner.step()
    assert not torch.equal(before["vectors"], weights(learner)["vectors"])


@pytest.mark.parametrize("form", builders.FORMS)
def test_several_steps_per_iteration_go_on_when_all_are_frozen(form):
    learner = new_learner(num_prototypes=2, steps_per_iteration=3, form=form)
    rng = np.random.default_rng(0)
    until(learner.met.all, learner, rng)
    before = weights(learner)
    (metrics,) = iterate(learner, rng, 1)
    after = weights(learner)
    # Both took part, though not in every one of the three steps.
    assert all(not torch.equal(before["vectors"][i], after["vectors"][i]) for i in range(2))
    assert metrics["separation"].keys() == {"0", "1"}


def test_a_frozen_prototype_draws_as_many_of_its_exemplars_as_a_live_one(monkeypatch):
    learner = new_learner(num_prototypes=1, memory_batch=2, threshold=0.05)
    until(lambda: learner.memory.exemplars, learner, np.random.default_rng(0))
    (own,) = learner.memory.exemplars.values()
    assert (len(own.successes), len(own.failures)) == (4, 4)
    drawn, original = [], learner_module.contrastive_loss

    def noting(view, options, active, live, frozen):
        drawn.extend((len(c.successes), len(c.failures)) for c in (live, *frozen))
        return original(view, options, active, live, frozen)

    monkeypatch.setattr(learner_module, "contrastive_loss", noting)
    learner.step()
    assert drawn == [(2, 2), (2, 2)]


def test_without_freezing_prototypes_pay_but_have_no_exemplars():
    learner, rng = new_learner(freeze=False), np.random.default_rng(0)
    iterate(learner, rng, 40)
    assert learner.met.any()
    assert learner.memory.exemplars == {}
    assert learner.snapshot().pays.tolist() == learner.met.tolist()


def test_freeze_distinct_leaves_a_step_to_the_prototype_that_found_it_first():
    """The task has one marker, and without diversity both prototypes go for it."""
    values = {"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "diversity_coeff": 0.0}
    values |= {"threshold": 0.6, "freeze_after": 10}
    free, distinct = new_learner(**values), new_learner(**values, freeze_distinct=True)
    for learner in (free, distinct):
        iterate(learner, np.random.default_rng(0), 40)
        assert (learner.streak >= 10).all()
    assert free.met.tolist() == [True, True]
    assert distinct.met.sum() == len(distinct.memory.exemplars) == 1
