"""RUDDER against its formulas, a step at a time; the planted step; lessons; returns are kept."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import (
    PICTURES,
    VECTORS,
    learn,
    light_of,
    model,
    planted_batch,
    planted_episode,
    random_episodes,
    trained,
    worker,
)

from rllib_conspec.reward_models.rudder import redistribute


def literal_predictions(networks, episode, change):
    """ĝ of every step: the formulas of the module's docstring, cell by cell, frame by frame."""
    cell, head = networks.cell, networks.head
    units = range(len(cell.gate.bias))
    c = [torch.zeros(()).double() for _ in units]
    before, predictions = None, []
    for frame, action in zip(episode.frames, episode.actions, strict=True):
        z = networks.steps.encoder(torch.tensor(frame)[None])[0]
        seen = z - before if change and before is not None else z
        before = z
        x = torch.cat([seen, torch.eye(3).double()[action]])
        gate = [
            1
            / (
                1
                + torch.exp(
                    -(sum(cell.gate.weight[i, j] * c[j] for j in units) + cell.gate.bias[i])
                )
            )
            for i in units
        ]
        offered = [torch.tanh((cell.input.weight[i] * x).sum() + cell.input.bias[i]) for i in units]
        c = [c[i] + gate[i] * offered[i] for i in units]
        predictions.append(sum(head.weight[0, i] * c[i] for i in units) + head.bias[0])
    return predictions


def literal_loss(predictions, total, continuous):
    along = sum((g - total) ** 2 for g in predictions) / len(predictions)
    return (predictions[-1] - total) ** 2 + continuous * along


def literal_rewards(predictions, total):
    missed = (total - predictions[-1]) / len(predictions)
    return [g - (predictions[t - 1] if t else 0.0) + missed for t, g in enumerate(predictions)]


def in_doubles(space, inputs="state", **options):
    """Gates that are open enough for the memory to matter."""
    own = model("rudder", space, inputs=inputs, **options)
    own.networks.double()
    torch.nn.init.normal_(own.networks.cell.gate.weight)
    torch.nn.init.zeros_(own.networks.cell.gate.bias)
    return own


@given(
    seed=st.integers(0, 10_000),
    space=st.sampled_from([VECTORS, PICTURES]),
    inputs=st.sampled_from(["state", "change"]),
    continuous=st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_predictions_loss_gradient_and_rewards_are_those_of_the_formulas(
    seed, space, inputs, continuous
):
    own = in_doubles(space, inputs, seed=seed, continuous=continuous)
    episodes = random_episodes(np.random.default_rng(seed), space)
    totals = [float(e.rewards.sum(dtype=np.float64)) for e in episodes]
    found = [literal_predictions(own.networks, e, inputs == "change") for e in episodes]
    expected = [literal_loss(g, total, continuous) for g, total in zip(found, totals, strict=True)]
    losses, errors = own._losses(episodes, totals)
    for mine, theirs, error, g, total in zip(losses, expected, errors, found, totals, strict=True):
        assert mine.item() == pytest.approx(theirs.item(), rel=1e-9)
        assert error.item() == pytest.approx((g[-1].item() - total) ** 2, rel=1e-6, abs=1e-12)

    weights = list(own.networks.parameters())
    mine = torch.autograd.grad(losses.mean(), weights)
    theirs = torch.autograd.grad(sum(expected) / len(expected), weights)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)

    worth = own._of_all(own.attribute, episodes)
    for rewards, g, total in zip(worth, found, totals, strict=True):
        np.testing.assert_allclose(
            rewards, [x.item() for x in literal_rewards(g, total)], atol=1e-6
        )


@given(st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 1e4]))
@settings(deadline=None)
def test_whatever_is_predicted_returns_are_kept(seed, scale):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, rng.integers(1, 6))
    mask = torch.from_numpy(np.arange(lengths.max()) < lengths[:, None])
    predictions = torch.from_numpy(rng.normal(size=mask.shape) * scale)
    returns = torch.from_numpy(rng.normal(size=len(lengths)))
    new = redistribute(predictions, mask, returns)
    assert not new[~mask].any()
    torch.testing.assert_close(new.sum(dim=1), returns, rtol=1e-9, atol=1e-9 * scale)


def test_what_it_pays_sums_up_to_nothing():
    own = trained(model("rudder", target=1e6, lessons=4))
    for paid in worker(own).reward(random_episodes(np.random.default_rng(7), count=20)):
        assert paid.sum() == pytest.approx(0.0, abs=1e-5)


QUICK = {"encoder_dim": 32, "dim": 32, "lr": 0.01}


def test_the_reward_goes_to_the_step_that_decides():
    """In every held-out success: about as much of it as nobody could know before, at that step."""
    own = model("rudder", PICTURES, **QUICK)
    rng = np.random.default_rng(0)
    new = [planted_episode(rng, True) for _ in range(20)]
    lights = [light_of(e) for e in new]
    untrained = own._of_all(own.attribute, new)
    assert np.mean([w[t] for w, t in zip(untrained, lights, strict=True)]) < 0.2
    taken, paid = [], []
    for _ in range(30):
        metrics = learn(own, planted_batch(rng))
        taken.append(metrics["steps"])
        paid.append(own.paying)
    # It pays from when returns are predicted well enough, and learns no more than it has to.
    assert metrics["error"] < 0.3
    assert paid == sorted(paid) and not paid[0] and paid[-1]
    assert taken[0] == own.options.steps and min(taken) < own.options.steps
    worth = own._of_all(own.attribute, new)
    assert [int(w.argmax()) for w in worth] == lights
    assert np.mean([w[t] for w, t in zip(worth, lights, strict=True)]) > 0.45
    # Where the environment pays, little is left.
    assert np.mean([w[-1] for w in worth]) < 0.2
    # An unlit episode earns nothing: no step after the first one is worth much.
    dark = own._of_all(own.attribute, [planted_episode(rng, False) for _ in range(20)])
    assert np.mean([w[1:].max() for w in dark]) < 0.25
    (summary, most, _) = own.describe(own.get_state()).lines
    assert "64 lessons with returns from 0 to 1" in summary
    assert most.startswith("worth most: light (100% of episodes)")


# --- lessons -----------------------------------------------------------------------------------


def losses_of(own, episodes):
    with torch.no_grad():
        return own._losses(episodes, [own.total(e) for e in episodes])[0].tolist()


def test_the_episodes_with_the_largest_losses_are_the_lessons():
    own = model("rudder", PICTURES, lessons=5, target=1e6)  # no gradient step: losses stay
    rng = np.random.default_rng(0)
    batches = [random_episodes(rng, PICTURES, count=6) for _ in range(3)]
    for batch in batches:
        learn(own, batch)
    all_losses = losses_of(own, [e for batch in batches for e in batch])
    kept = [lesson.loss for lesson in own._lessons]
    np.testing.assert_allclose(kept, sorted(all_losses, reverse=True)[:5], rtol=1e-5)
    again = losses_of(own, [lesson.episode for lesson in own._lessons])
    np.testing.assert_allclose(again, kept, rtol=1e-5)


def test_lessons_are_drawn_in_proportion_to_their_losses():
    own = model("rudder", PICTURES, lessons=4, batch=1, target=1e-9, steps=1, lr=1e-12)
    learn(own, random_episodes(np.random.default_rng(2), PICTURES))
    chances = np.array([lesson.loss for lesson in own._lessons])
    drawn, before = np.zeros(4), own._losses

    def counted(episodes, totals):
        (place,) = [i for i, x in enumerate(own._lessons) if x.episode is episodes[0]]
        drawn[place] += 1
        return before(episodes, totals)

    own._losses = counted
    for _ in range(400):
        own._learn()
    np.testing.assert_allclose(drawn / 400, chances / chances.sum(), atol=0.08)


def test_lessons_known_by_heart_do_not_pay():
    """One batch of four is soon learned; it pays when there are as many as it may keep."""
    own = model("rudder", PICTURES, lessons=8, steps=200, **QUICK)
    rng = np.random.default_rng(0)
    few = [planted_episode(rng, marked) for marked in (True, False, True, False)]
    assert learn(own, few)["error"] <= own.options.target and not own.paying
    learn(own, [planted_episode(rng, marked) for marked in (True, False, True, False)])
    assert own.paying


def test_equal_returns_teach_nothing():
    own = model("rudder", PICTURES)
    metrics = learn(own, [planted_episode(np.random.default_rng(i), True) for i in range(8)])
    assert metrics == {"lessons": 8, "steps": 0}
    assert math.isnan(own.error) and not own.paying
