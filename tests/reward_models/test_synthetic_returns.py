"""SynthRs against its formulas, a pair of steps at a time; the planted step, with both gates."""

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
)


def literal_predictions(networks, episode, gate, bias):
    """r̂ of every step: the formulas of the module's docstring."""
    z = [networks.steps.encoder(torch.tensor(frame)[None])[0] for frame in episode.frames]
    logits = [networks.g(x)[0] for x in z]
    if gate == "sigmoid":
        g = [1 / (1 + torch.exp(-x)) for x in logits]
    else:
        highest = max(x.item() for x in logits)
        powers = [torch.exp(x - highest) for x in logits]
        g = [p / sum(powers) for p in powers]
    predictions = []
    for t, x in enumerate(z):
        before = torch.zeros(()).double()
        for k in range(t):
            before = before + networks.c(z[k].detach())[0]
        predictions.append(g[t] * before + (networks.b(x)[0] if bias else 0.0))
    return predictions


@given(
    seed=st.integers(0, 10_000),
    space=st.sampled_from([VECTORS, PICTURES]),
    gate=st.sampled_from(["softmax", "sigmoid"]),
    bias=st.booleans(),
)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_loss_gradient_and_pay_are_those_of_the_formulas(seed, space, gate, bias):
    own = model("synthrs", space, seed=seed, gate=gate, bias=bias, alpha=0.3, beta=0.7)
    own.networks.double()
    torch.nn.init.normal_(own.networks.c[-1].weight)
    episodes = random_episodes(np.random.default_rng(seed), space)
    squares = [
        (float(r) - predicted) ** 2 / 2
        for e in episodes
        for r, predicted in zip(
            e.rewards, literal_predictions(own.networks, e, gate, bias), strict=True
        )
    ]
    expected, loss = sum(squares) / len(squares), own.loss(episodes)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    weights = list(own.networks.parameters())
    mine = torch.autograd.grad(loss, weights)
    theirs = torch.autograd.grad(expected, weights)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)
    own.paying = True
    for e, paid in zip(episodes, own.reward(episodes), strict=True):
        for t, frame in enumerate(e.frames):
            z = own.networks.steps.encoder(torch.tensor(frame)[None])
            c = own.networks.c(z).item()
            assert paid[t] == pytest.approx(0.3 * c + (0.7 - 1) * e.rewards[t], abs=1e-6)


# With a sigmoid, a gate that opens at every step has to be closed at all but the last: that takes
# longer, and steady gradients.
@pytest.mark.parametrize(
    ("gate", "batches", "options"),
    [
        ("softmax", 25, {"encoder_dim": 32, "dim": 16, "lr": 1e-2}),
        ("sigmoid", 60, {"encoder_dim": 64, "dim": 64, "lr": 3e-3, "batch": 16}),
    ],
)
def test_the_step_that_decides_contributes_most(gate, batches, options):
    """The light contributes the whole reward, in every held-out success."""
    own = model("synthrs", PICTURES, gate=gate, **options)
    rng = np.random.default_rng(0)
    losses = [learn(own, planted_batch(rng))["loss"] for _ in range(batches)]
    assert losses[-1] < 0.1 * losses[0]
    new = [planted_episode(rng, True) for _ in range(20)]
    worth = own._of_all(own.contribution, new)
    assert [int(w.argmax()) for w in worth] == [light_of(e) for e in new]
    assert np.mean([w.max() for w in worth]) == pytest.approx(1.0, abs=0.15)
    dark = own._of_all(own.contribution, [planted_episode(rng, False) for _ in range(20)])
    assert np.mean([w.max() for w in dark]) < 0.4
    assert own.describe(own.get_state()).lines[1].startswith("worth most: light (100% of episodes)")


def test_nothing_contributes_before_anything_was_learned():
    own = model("synthrs")
    own.paying = True
    for e in random_episodes(np.random.default_rng(0)):
        assert not own._of_all(own.contribution, [e])[0].any()


def test_passes_and_batches():
    own = model("synthrs", batch=3, epochs=2)
    steps, before = [], own.loss
    own.loss = lambda episodes: steps.append(len(episodes)) or before(episodes)
    learn(own, random_episodes(np.random.default_rng(0), count=7))
    assert sorted(steps) == [2, 2, 2, 2, 3, 3]


def test_alpha_scales_contributions_alone():
    episodes = random_episodes(np.random.default_rng(5))
    one, three, none = (trained(model("synthrs", alpha=a)).reward(episodes) for a in (0.1, 0.3, 0))
    np.testing.assert_allclose(np.concatenate(three), 3 * np.concatenate(one), rtol=1e-4, atol=1e-7)
    assert not np.concatenate(none).any()
    assert math.isfinite(sum(p.sum() for p in one))
