"""Why ConSpec does not pay yet, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rllib_conspec.reward_models.base import milestone
from rllib_conspec.reward_models.conspec.scorer import episode_scores

if TYPE_CHECKING:
    from rllib_conspec.reward_models.conspec.learner import ConSpecLearner

EPISODES = 200  # of one kind without any of the other, before a word is said
ITERATIONS = 100  # of learning without a prototype that met the criterion
EVERY = 50  # iterations between looks at where the prototypes match
NEAR = 2  # steps between matches that count as the same step


def hints(learner: ConSpecLearner) -> list[str]:
    """One line for each thing that stands in the way."""
    if not learner.options.learn:
        return []
    won, lost = learner.memory.seen
    if not won and lost >= EPISODES:
        count = milestone(lost, EPISODES)
        return [
            f"no success in {count} episodes, so there is nothing to learn from yet. A task that "
            "is easier at first, a larger entropy_coeff, or another `success` would help."
        ]
    if not lost and won >= EPISODES:
        count = milestone(won, EPISODES)
        return [
            f"all of {count} episodes count as successes, so there is no failure to compare them "
            "with. Say what success is: `success: top_k` (the best of each batch), `goal` or a "
            "function of your own."
        ]
    if not learner.learning:
        return []
    found = []
    if not learner.met.any() and _at_a_milestone(learner.iterations):
        found.append(
            f"no prototype has met the criterion after {learner.iterations} iterations of learning."
            f"{_best(learner)} A critical step must be visible in a single observation; a lower "
            "`threshold`, or more failures that differ from the successes, may help."
        )
    if learner.iterations and learner.iterations % EVERY == 0 and _all_on_one_step(learner):
        found.append(
            "all prototypes match the same step. A larger `diversity_coeff`, or `diversity_window: "
            "3`, sets them apart; if that step is the reward itself, nothing before it is told "
            "apart yet."
        )
    return found


def _at_a_milestone(iterations: int) -> bool:
    return iterations >= ITERATIONS and iterations == milestone(iterations, ITERATIONS)


def _best(learner: ConSpecLearner) -> str:
    separation = learner.unseen_separation
    if np.isnan(separation).all():
        return ""
    return f" The best one separates new episodes by {np.nanmax(separation):.2f}."


def _all_on_one_step(learner: ConSpecLearner) -> bool:
    if learner.active < 2:
        return False
    episodes = learner.memory.examples(None)[0][-8:]
    peaks = [s[: learner.active].argmax(axis=1) for s in episode_scores(learner.model, episodes)]
    return all(p.max() - p.min() <= NEAR for p in peaks)
