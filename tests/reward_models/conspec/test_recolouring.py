"""Prototypes learn to match what they match in other colours, too."""

import copy

import numpy as np
import pytest
import torch
from builders import episode
from learners import same_weights, weights

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.palette import repaint
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.scorer import episode_scores

SIDE, STEPS = 7, 8
# A thing on a ground, in colours of their own: a cross where it counts, otherwise a square.
GROUND, THING = np.array([150, 150, 150]), np.array([30, 45, 235])
SQUARE = np.zeros((SIDE, SIDE), bool)
SQUARE[1:4, 1:4] = True
CROSS = np.eye(SIDE, dtype=bool) | np.eye(SIDE, dtype=bool)[::-1]


def picture(rng, cross: bool) -> np.ndarray:
    """[7, 7, 3]; squares lie anywhere."""
    shape = CROSS if cross else np.roll(SQUARE, rng.integers(SIDE - 3, size=2), axis=(0, 1))
    return np.where(shape[..., None], THING, GROUND).astype(np.uint8)


def batch(rng, count=4):
    """Successes, each with a cross at one step, and failures."""
    played = {True: [], False: []}
    for success in (True, False) * count:
        at = int(rng.integers(STEPS)) if success else -1
        seen = np.stack([picture(rng, t == at) for t in range(STEPS)])
        played[success].append(episode(seen, success, events=((at, "cross"),) if success else ()))
    return played[True], played[False]


OPTIONS = {
    **{"num_prototypes": 2, "encoder": "conv", "encoder_dim": 32, "projection_dim": 16},
    **{"memory": "ages", "memory_size": 64, "memory_batch": 16, "min_successes": 4},
    **{"threshold": 0.5, "freeze_after": 8, "steps_per_iteration": 4, "failure_coeff": 1.3},
}


@pytest.fixture(scope="module")
def learned():
    """The state of a learner that has found the cross."""
    learner = ConSpecLearner(ConSpecOptions(**OPTIONS), (SIDE, SIDE, 3), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        learner.add(*batch(rng))
        learner.step()
    assert learner.met.any()
    return learner.get_state()


def continued(state, **values):
    learner = ConSpecLearner(
        ConSpecOptions(**OPTIONS, learn=False, **values), (SIDE, SIDE, 3), seed=0
    )
    learner.set_state(state)
    return learner


def found(learner, paint=False):
    """Share of new successes in which a prototype that pays matches the cross best."""
    rng = np.random.default_rng(1)
    won, _ = batch(rng, 24)
    torch.manual_seed(0)
    if paint:
        won = [episode(repaint(torch.from_numpy(e.frames)[None])[0].numpy(), True) for e in won]
    at = [e.events[0][0] for e in batch(np.random.default_rng(1), 24)[0]]
    scores = episode_scores(learner.model, won)
    hits = [
        (s[learner.met].argmax(axis=1) == t).any() and s[learner.met].max() > 0.5
        for s, t in zip(scores, at, strict=True)
    ]
    return float(np.mean(hits))


def test_what_was_found_is_found_in_other_colours_afterwards(learned):
    learner = continued(learned, recolour=True)
    assert found(learner) == 1.0 and found(learner, paint=True) < 0.4
    losses = [learner.step()["recolour_loss"] for _ in range(60)]
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:5])
    assert found(learner) == 1.0 and found(learner, paint=True) > 0.75


def test_memories_and_who_pays_stay_as_they_are(learned):
    learner = continued(learned, recolour=True)
    counts = learner.memory.count
    learner.add(*batch(np.random.default_rng(3)))
    learner.step()
    assert learner.memory.count == counts
    assert (learner.met == learned["met"]).all()


def test_without_it_nothing_changes(learned):
    learner = continued(learned)
    before = weights(learner)
    assert "recolour_loss" not in learner.step()
    assert same_weights(weights(learner), before)


def test_saved_restored_and_continued_it_is_the_same(learned):
    learner = continued(learned, recolour=True)
    learner.step()
    other = continued(copy.deepcopy(learner.get_state()), recolour=True)
    for _ in range(2):
        assert learner.step() == other.step()
    assert same_weights(weights(learner), weights(other))


def test_it_is_refused_where_it_makes_no_sense():
    with pytest.raises(OptionError, match="set learn to false"):
        ConSpecOptions(recolour=True)
