"""The criterion on held-out episodes: memorising what is in the memories does not meet it."""

import numpy as np
import pytest
import torch
from builders import contents, marked_episode, marked_episodes
from learners import iterate, new_learner

from rllib_conspec.reward_models.conspec import learner as learner_module
from rllib_conspec.reward_models.conspec.contrast import best_matches


def test_held_out_episodes_are_the_newest_and_pass_on_in_order():
    learner = new_learner(
        criterion="unseen", unseen_successes=3, unseen_failures=2, failure_memory_size=5
    )
    rng, won, lost = np.random.default_rng(0), [], []
    for size in (1, 1, 2, 5, 0, 3, 1):
        new = marked_episodes(rng, size, size + 1)
        learner.add(*new)
        won += new[0]
        lost += new[1]
        assert contents(learner.unseen_successes) == contents(won[-3:])
        assert contents(learner.unseen_failures) == contents(lost[-2:])
        assert contents(learner.successes) == contents(won[:-3][-4:])
        assert contents(learner.failures) == contents(lost[:-2][-5:])
        assert learner.seen == (len(won), len(lost))
        learner.step()


def test_the_criterion_is_judged_on_held_out_episodes_alone():
    values = {"unseen_successes": 4, "unseen_failures": 3, "unseen_threshold": 0.15}
    learner = new_learner(criterion="unseen", threshold=0.6, **values)
    rng, streak, reached_at_all, refuted = np.random.default_rng(0), [0] * 3, 0, 0
    for _ in range(40):
        iterate(learner, rng, 1)
        if not learner.learning:
            continue
        held = learner.unseen_successes, learner.unseen_failures
        won, lost = (best_matches(learner.model, range(3), e, 1) for e in held)
        for i in range(3):
            separates = float(won[i].mean() - lost[i].mean()) > 0.15
            # Every held-out success must have a match, not only their mean.
            reached = separates and float(won[i].min()) > 0.6
            streak[i] = streak[i] + 1 if reached else 0
            reached_at_all += reached
            refuted += separates and not reached and float(won[i].mean()) > 0.6
        assert learner.streak.tolist() == streak
    assert reached_at_all > 5
    assert refuted > 0


@pytest.mark.parametrize(("share", "forgiven"), [(1.0, False), (0.8, False), (0.75, True)])
def test_some_held_out_successes_may_be_forgiven(monkeypatch, share, forgiven):
    learner = new_learner(
        num_prototypes=1, criterion="unseen", threshold=0.5, unseen_share=share, freeze_after=1000
    )
    learner.add(*marked_episodes(np.random.default_rng(0), 8, 30))
    matches = iter([torch.tensor([[0.9, 0.9, 0.3, 0.9]]), torch.zeros(1, 16)])
    monkeypatch.setattr(learner_module, "best_matches", lambda *_: next(matches))
    learner.step()
    assert (learner.streak[0] > 0) == forgiven


def test_memorising_does_not_meet_the_criterion():
    """Nothing tells these successes from failures, so only the memories can be told apart."""
    values = {"lr": 0.02, "freeze_after": 5, "threshold": 0.3, "unseen_threshold": 0.3}
    by_memory = new_learner(**values)
    by_unseen = new_learner(**values, criterion="unseen")
    rng = np.random.default_rng(0)
    for learner in (by_memory, by_unseen):
        lucky = [marked_episode(rng, False) for _ in range(8)]
        learner.add(lucky, [marked_episode(rng, False) for _ in range(20)])
        for _ in range(40):
            learner.step()
    assert by_memory.met.all()
    assert by_unseen.met.sum() < by_memory.met.sum()
