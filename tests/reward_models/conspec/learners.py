"""Small learners on synthetic episodes, for the tests of both sides of ConSpec."""

import hashlib

import builders
import torch
from builders import marked_episodes

from rllib_conspec.reward_models.conspec.learner import ConSpecLearner

SHAPE = (4,)
GAMMA = 0.9
# Small memories, and a threshold that prototypes reach within a few steps.
QUICK = {
    "num_prototypes": 3,
    "encoder_dim": 16,
    "projection_dim": 32,
    "memory_size": 4,
    "memory_batch": 4,
    "threshold": 0.1,
    "freeze_after": 3,
    "lr": 0.01,
    "diversity_coeff": 0.01,  # the synthetic task has one marker for all
}


def new_learner(seed=0, **values) -> ConSpecLearner:
    return ConSpecLearner(builders.options(**(QUICK | values)), SHAPE, seed=seed)


def iterate(learner, rng, iterations, won=2, lost=3):
    """Whole iterations with new episodes in each; metrics of each."""
    metrics = []
    for _ in range(iterations):
        learner.add(*marked_episodes(rng, won, lost))
        metrics.append(learner.step())
    return metrics


def until(condition, learner, rng, most=60):
    """Iterations until the condition holds, at most so many; metrics of each."""
    metrics = []
    while not condition():
        assert len(metrics) < most, "the condition was never met"
        metrics += iterate(learner, rng, 1)
    return metrics


def weights(learner) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in learner.model.named_parameters()}


def same_weights(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(p, b[name]) for name, p in a.items())


def checksum(episodes) -> str:
    return hashlib.sha256(b"".join(builders.contents(episodes))).hexdigest()
