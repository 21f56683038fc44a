"""The scorer: what a snapshot pays, against the literal formulas."""

import copy
import pickle

import builders
import literal
import numpy as np
import pytest
from builders import marked_episode, marked_episodes
from learners import GAMMA, SHAPE, iterate, new_learner, until

from rllib_conspec.reward_models.conspec.scorer import ConSpecScorer


@pytest.mark.parametrize(
    "paid", [{"intrinsic": "window"}, {"intrinsic": "potential"}, {"pay_once": True}], ids=str
)
@pytest.mark.parametrize("form", builders.FORMS)
def test_the_scorer_pays_what_the_formula_says(paid, form):
    # λ away from its default, so that it must be there.
    learner = new_learner(num_prototypes=4, form=form, **paid, intrinsic_coeff=0.6, recruit_start=2)
    rng = np.random.default_rng(0)
    until(learner.met.any, learner, rng)
    pays = list(np.flatnonzero(learner.snapshot().pays))
    assert 0 < len(pays) < 4
    scorer = ConSpecScorer(learner.options, SHAPE, GAMMA)
    scorer.load(learner.snapshot())

    unseen = [marked_episode(rng, k % 2 == 0, length=1 + 3 * k) for k in range(6)]
    model = copy.deepcopy(learner.model).double()
    total = 0.0
    for episode, reward in zip(unseen, scorer.reward(unseen), strict=True):
        assert reward.dtype == np.float32
        expected = literal.intrinsic_reward(model, learner.options, pays, episode, GAMMA)
        np.testing.assert_allclose(reward, expected, atol=1e-5)
        total += np.abs(reward).sum()
    assert total > 0.1


def test_one_episode_is_paid_the_same_alone_and_in_a_batch():
    learner, rng = new_learner(form="paper"), np.random.default_rng(0)
    iterate(learner, rng, 5)
    scorer = ConSpecScorer(learner.options, SHAPE, GAMMA)
    scorer.load(learner.snapshot())
    batch = [marked_episode(rng, True, length=5 + k) for k in range(4)]
    together = scorer.reward([*batch, batch[0]])
    for episode, reward in zip([*batch, batch[0]], together, strict=True):
        np.testing.assert_allclose(scorer.reward([episode])[0], reward, atol=1e-6)


def test_a_scorer_without_paying_prototypes_pays_nothing():
    scorer = ConSpecScorer(builders.options(), SHAPE, GAMMA)
    won, lost = marked_episodes(np.random.default_rng(0), 2, 1)
    learner = new_learner()
    for snapshot in (None, learner.snapshot()):
        if snapshot is not None:
            scorer.load(snapshot)
        rewards = scorer.reward(won + lost)
        assert [r.shape for r in rewards] == [(8,)] * 3
        assert all(r.dtype == np.float32 and (r == 0).all() for r in rewards)
    assert scorer.reward([]) == []


def test_a_snapshot_travels_and_does_not_follow_the_learner():
    learner, rng = new_learner(form="paper"), np.random.default_rng(0)
    iterate(learner, rng, 4)
    snapshot = learner.snapshot()
    received = pickle.loads(pickle.dumps(snapshot))
    for array in received.weights.values():
        array.flags.writeable = False  # as arrays from an object store are
    scorers = [ConSpecScorer(learner.options, SHAPE, GAMMA) for _ in range(2)]
    scorers[0].load(received)
    probe, _ = marked_episodes(rng, 3, 0)
    before = scorers[0].reward(probe)
    iterate(learner, rng, 4)
    scorers[1].load(snapshot)
    for scorer in scorers:
        assert all(map(np.array_equal, scorer.reward(probe), before))
    scorers[0].load(learner.snapshot())
    assert not all(map(np.array_equal, scorers[0].reward(probe), before))
