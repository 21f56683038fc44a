"""Recruiting: starting with few prototypes, and who pays before and after."""

import numpy as np
import torch
from builders import marked_episodes
from learners import iterate, new_learner, until, weights


def test_recruiting_adds_one_when_all_have_met_the_criterion():
    learner = new_learner(num_prototypes=5, recruit_start=2)
    rng, waited = np.random.default_rng(0), False
    assert learner.active == 2
    while learner.active < 5:
        before, ready = learner.active, learner.met[: learner.active].all()
        (metrics,) = iterate(learner, rng, 1)
        assert metrics["prototypes"] == learner.active
        if learner.active > before:
            assert learner.active == before + 1
            assert learner.met[:before].all()
        else:
            assert not ready
            waited = True
        assert not learner.met[learner.active :].any()
        assert learner.iterations < 100
    assert waited
    iterate(learner, rng, 20)
    assert learner.active == 5


def test_without_recruiting_all_take_part_from_the_start():
    learner = new_learner(num_prototypes=5)
    assert learner.active == 5


def test_prototypes_in_waiting_do_not_move():
    learner = new_learner(num_prototypes=5, recruit_start=2, threshold=1.0)
    before = weights(learner)
    iterate(learner, np.random.default_rng(0), 8)
    for name in ("vectors", "layer1", "layer2"):
        after = weights(learner)[name]
        assert torch.equal(after[2:], before[name][2:])
        assert not torch.equal(after[:2], before[name][:2])


# --- who pays ---------------------------------------------------------------------------------


def test_those_that_met_the_criterion_pay_and_in_the_papers_form_all():
    rng = np.random.default_rng(0)
    frozen = [new_learner(form="mixed"), new_learner(form="code")]
    everyone = new_learner(form="paper")
    for learner in (*frozen, everyone):
        assert not learner.snapshot().pays.any()  # nothing is learned yet
        learner.add(*marked_episodes(rng, 4, 4))
        learner.step()
    assert everyone.snapshot().pays.all()
    for learner in frozen:
        assert not learner.snapshot().pays.any()
        until(learner.met.any, learner, rng)
        assert learner.snapshot().pays.tolist() == learner.met.tolist()


def test_prototypes_in_waiting_do_not_pay():
    learner = new_learner(form="paper", num_prototypes=5, recruit_start=2, threshold=1.0)
    iterate(learner, np.random.default_rng(0), 4)
    assert learner.snapshot().pays.tolist() == [True, True, False, False, False]


def test_a_prototype_recruited_but_not_yet_trained_does_not_pay():
    learner = new_learner(form="paper", num_prototypes=3, recruit_start=1)
    rng, start = np.random.default_rng(0), weights(learner)["vectors"]
    while learner.active < 3:
        iterate(learner, rng, 1)
        for i in np.flatnonzero(learner.snapshot().pays):
            assert not torch.equal(weights(learner)["vectors"][i], start[i])
        assert learner.iterations < 60
    iterate(learner, rng, 1)
    assert learner.snapshot().pays.all()
