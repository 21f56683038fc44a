"""Restarting: prototypes that separate nothing get new random values."""

import builders
import numpy as np
import pytest
from learners import iterate, new_learner, until, weights


def hopeless(**values):
    """A learner whose successes and failures are the same: no prototype can separate them."""
    learner, frames = new_learner(**values), builders.frames(builders.options(), 6, 0)
    same = [builders.episode(frames) for _ in range(4)]
    learner.add(same, same)
    return learner


@pytest.mark.parametrize("stop_gradient", [False, True])
@pytest.mark.parametrize("form", builders.FORMS)
def test_prototypes_that_separate_nothing_start_anew(form, stop_gradient):
    learner = hopeless(restart_after=5, form=form, stop_gradient=stop_gradient)
    for _ in range(4):
        learner.step()
    assert learner.idle.tolist() == [4] * 3
    before = weights(learner)
    learner.step()
    assert learner.idle.tolist() == [0] * 3
    # A gradient step moves a weight by about the learning rate, a new draw by far more.
    own = {"vectors"} if form == "paper" else {"vectors", "layer1", "layer2"}
    for name, after in weights(learner).items():
        moved = float((after - before[name]).abs().max())
        assert (moved > 10 * learner.options.lr) == (name in own), name
    for name in ("vectors", "layer1"):
        parameter = getattr(learner.model, name)
        if parameter in learner.optimizer.state and name in own:
            assert (learner.optimizer.state[parameter]["exp_avg"] == 0).all()
    assert "loss" in iterate(learner, np.random.default_rng(0), 1)[0]


def test_prototypes_that_met_the_criterion_are_never_restarted():
    learner, rng = new_learner(restart_after=2), np.random.default_rng(0)
    until(learner.met.any, learner, rng)
    first = int(np.flatnonzero(learner.met)[0])
    learner.idle[first] = 1000
    before = weights(learner)["vectors"][first]
    iterate(learner, rng, 1)
    moved = (weights(learner)["vectors"][first] - before).abs().max()
    assert float(moved) < 10 * learner.options.lr


def test_without_the_option_nothing_is_restarted():
    learner = hopeless()
    before = weights(learner)["vectors"]
    for _ in range(12):
        learner.step()
    assert float((weights(learner)["vectors"] - before).abs().max()) < 14 * learner.options.lr
