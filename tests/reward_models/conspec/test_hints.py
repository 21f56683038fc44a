"""Hints: each is given when its reason is there, and none when all is well."""

import numpy as np
import pytest
import torch
from builders import episode, marked_episodes
from learners import iterate, new_learner, until

from rllib_conspec.reward_models.conspec import hints as hints_module
from rllib_conspec.reward_models.conspec.hints import EPISODES, EVERY, ITERATIONS, hints


def add_frames(learner, won: int, lost: int) -> None:
    """So many episodes of a single frame."""
    one = episode(np.zeros((1, 4), np.float32))
    learner.add([one] * won, [one] * lost)


@pytest.mark.parametrize("memory", ["newest", "ages"])
def test_no_success_is_said_after_a_while(memory):
    learner = new_learner(memory=memory)
    add_frames(learner, 0, EPISODES - 1)
    assert hints(learner) == []
    add_frames(learner, 0, 1)
    (hint,) = hints(learner)
    assert hint.startswith(f"no success in {EPISODES} episodes")
    assert "`success`" in hint
    add_frames(learner, 0, EPISODES - 1)
    assert hints(learner) == [hint]  # the same line, which nobody shows again
    add_frames(learner, 0, 1)
    assert hints(learner) == [hint.replace(f"{EPISODES}", f"{2 * EPISODES}")]
    add_frames(learner, 1, 0)
    assert hints(learner) == []


@pytest.mark.parametrize("memory", ["newest", "ages"])
def test_no_failure_is_said_after_a_while(memory):
    learner = new_learner(memory=memory)
    add_frames(learner, EPISODES - 1, 0)
    assert hints(learner) == []
    add_frames(learner, 1, 0)
    (hint,) = hints(learner)
    assert hint.startswith(f"all of {EPISODES} episodes count as successes")
    assert "`success: top_k`" in hint
    add_frames(learner, 0, 1)
    assert hints(learner) == []


def apart(learner) -> None:
    """Hold one prototype's vector opposite to another's, so that they cannot peak together."""
    with torch.no_grad():
        learner.model.layer1[1:] = learner.model.layer1[:1]
        learner.model.layer2[1:] = learner.model.layer2[:1]
        learner.model.vectors[1] = -learner.model.vectors[0]


def test_a_criterion_that_nobody_meets_is_said_with_the_best_separation():
    learner, rng = new_learner(threshold=1.0), np.random.default_rng(0)
    until(lambda: learner.learning, learner, rng)
    learner.iterations = ITERATIONS - 1
    assert hints(learner) == []
    iterate(learner, rng, 1)
    learner.unseen_separation[:] = [0.25, np.nan, 0.125]
    apart(learner)
    (hint,) = hints(learner)
    assert hint.startswith(f"no prototype has met the criterion after {ITERATIONS} iterations")
    assert "separates new episodes by 0.25." in hint
    learner.unseen_separation[:] = np.nan
    assert "separates" not in hints(learner)[0]
    said = []
    for learner.iterations in range(8 * ITERATIONS):
        said += [learner.iterations] * len(hints(learner))
    assert said == [ITERATIONS, 2 * ITERATIONS, 4 * ITERATIONS]
    learner.iterations = ITERATIONS
    learner.met[1] = True
    assert hints(learner) == []


def on_one_step(learner) -> None:
    """All prototypes the same."""
    with torch.no_grad():
        for parameter in (learner.model.layer1, learner.model.layer2, learner.model.vectors):
            parameter[:] = parameter[:1].clone()


def ready(**values):
    """A learner in an iteration in which it looks at where its prototypes match."""
    learner, rng = new_learner(**values), np.random.default_rng(0)
    for _ in range(4):
        learner.add(*marked_episodes(rng, 2, 3))
    learner.iterations = EVERY
    return learner


def test_prototypes_on_one_step_are_said_every_so_many_iterations():
    learner = ready()
    on_one_step(learner)
    (hint,) = hints(learner)
    assert hint.startswith("all prototypes match the same step")
    assert "`diversity_coeff`" in hint
    learner.iterations += 1
    assert hints(learner) == []
    learner.iterations = 0  # before anything is learned they may be anywhere
    assert hints(learner) == []


def test_prototypes_on_different_steps_are_well():
    learner = ready()
    apart(learner)
    assert hints(learner) == []


def test_neighbouring_steps_are_the_same_and_one_episode_apart_is_enough(monkeypatch):
    learner = ready(num_prototypes=2)

    def peaking(*pairs):
        def scores(model, episodes):
            return [np.eye(8)[list(pair)] for pair in pairs]

        monkeypatch.setattr(hints_module, "episode_scores", scores)
        return bool(hints(learner))

    assert peaking((3, 5), (0, 2))
    assert not peaking((3, 6))
    assert not peaking((3, 3), (1, 7))


def test_prototypes_in_waiting_do_not_count():
    learner = ready(recruit_start=2)
    on_one_step(learner)
    with torch.no_grad():
        learner.model.vectors[2] *= -1
    assert len(hints(learner)) == 1
    alone = ready(recruit_start=1)
    on_one_step(alone)
    assert hints(alone) == []


def test_silent_without_learning():
    learner = new_learner(learn=False)
    state = ready(threshold=1.0)
    on_one_step(state)
    state.iterations = ITERATIONS
    assert len(hints(state)) == 2
    learner.set_state(state.get_state())
    assert hints(learner) == []


def test_silent_when_all_is_well():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    until(learner.met.any, learner, rng)
    apart(learner)
    learner.iterations = ITERATIONS
    assert hints(learner) == []
