"""RRD against its formulas; that the correction is one; the planted step."""

from itertools import combinations

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

from rllib_conspec.reward_models.rrd import losses
from rllib_conspec.reward_models.steps import Steps


def literal_reward(networks, frame, action):
    z = networks.steps.encoder(torch.tensor(frame)[None])[0]
    x = torch.cat([z, torch.eye(3).double()[action]])
    hidden = [
        torch.relu((w * x).sum() + b) for w, b in zip(*networks.hidden.parameters(), strict=True)
    ]
    return (networks.head.weight[0] * torch.stack(hidden)).sum() + networks.head.bias[0]


def literal_loss(rewards, total, length, form):
    """Of r̂ on the drawn steps of an episode."""
    count = len(rewards)
    mean = sum(rewards) / count
    loss = (mean - total / length) ** 2
    if form == "unbiased" and count > 1:
        variance = sum((r - mean) ** 2 for r in rewards) / (count - 1)
        loss = loss - (1 - count / length) * variance / count
    return loss


@given(
    seed=st.integers(0, 10_000),
    space=st.sampled_from([VECTORS, PICTURES]),
    form=st.sampled_from(["surrogate", "unbiased"]),
    drawn=st.integers(2, 8),
)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_loss_gradient_and_pay_are_those_of_the_formulas(seed, space, form, drawn):
    own = model("rrd", space, seed=seed, form=form, drawn=drawn)
    own.networks.double()
    torch.nn.init.normal_(own.networks.head.weight)
    episodes = random_episodes(np.random.default_rng(seed), space)
    own._memory = [e.packed() for e in episodes]
    state = own._rng.bit_generator.state
    loss = own._loss()
    own._rng.bit_generator.state = state
    expected = 0.0
    some = own._rng.choice(len(episodes), 4, replace=False)
    for e in (episodes[i] for i in some):
        steps = own._rng.permutation(len(e))[:drawn]
        rewards = [literal_reward(own.networks, e.frames[t], e.actions[t]) for t in steps]
        total = float(e.rewards.sum(dtype=np.float64))
        expected = expected + literal_loss(rewards, total, len(e), form) / 4
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    weights = list(own.networks.parameters())
    mine = torch.autograd.grad(loss, weights)
    theirs = torch.autograd.grad(expected, weights)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    own.paying = True
    for e, paid in zip(episodes, own.reward(episodes), strict=True):
        for t in range(len(e)):
            new = literal_reward(own.networks, e.frames[t], e.actions[t]).item()
            assert paid[t] == pytest.approx(new - e.rewards[t], abs=1e-5)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 6))
@settings(deadline=None)
def test_over_all_draws_the_unbiased_loss_is_that_of_all_steps(seed, length, count):
    count = min(count, length)
    rng = np.random.default_rng(seed)
    rewards, mean = rng.normal(size=length), rng.normal()
    draws = np.array(list(combinations(rewards, count)))

    def of(form, drawn):
        drawn = torch.from_numpy(drawn)
        size = torch.ones(len(drawn)).double()
        return losses(drawn, drawn == drawn, mean * size, length * size, form).mean().item()

    whole = (rewards.mean() - mean) ** 2
    assert of("unbiased", draws) == pytest.approx(whole, abs=1e-9)
    assert of("surrogate", draws) >= whole - 1e-12
    assert of("unbiased", rewards[None]) == pytest.approx(whole, abs=1e-12)


def test_frames_that_are_not_drawn_are_not_read():
    rng = np.random.default_rng(0)
    own = model("rrd", PICTURES)
    episodes = [planted_episode(rng, True).packed() for _ in range(3)]
    drawn = [np.array([1, 4]), np.array([0]), np.array([2, 3, 5])]
    steps = Steps.of(episodes, own.setting.action_space, drawn)
    assert len(steps.frames) == 6 and steps.lengths.tolist() == [2, 1, 3]
    for k, own_steps in enumerate(drawn):
        real = steps.mask[k]
        np.testing.assert_array_equal(
            steps.frames[steps.index[k][real]], episodes[k].frames[own_steps]
        )
        np.testing.assert_array_equal(
            steps.actions[k][real].argmax(-1), episodes[k].actions[own_steps]
        )


@pytest.mark.parametrize(("form", "least"), [("surrogate", 0.35), ("unbiased", 0.8)])
def test_the_step_that_decides_is_worth_most(form, least):
    """The surrogate spreads rewards: the light is worth most, and less than all."""
    own = model("rrd", PICTURES, form=form, drawn=8, encoder_dim=32, dim=16, lr=0.01)
    rng = np.random.default_rng(0)
    for _ in range(30):
        learn(own, planted_batch(rng))
    new = [planted_episode(rng, True) for _ in range(20)]
    worth = own._of_all(own.attribute, new)
    assert [int(w.argmax()) for w in worth] == [light_of(e) for e in new]
    assert np.mean([w.max() for w in worth]) > least
    assert np.mean([w.sum() for w in worth]) == pytest.approx(1.0, abs=0.35)
    dark = own._of_all(own.attribute, [planted_episode(rng, False) for _ in range(20)])
    assert np.mean([w.sum() for w in dark]) < 0.5
    assert own.describe(own.get_state()).lines[1].startswith("worth most: light (100% of episodes)")


def test_the_newest_episodes_are_remembered():
    own = model("rrd", memory=6)
    rng = np.random.default_rng(0)
    batches = [random_episodes(rng) for _ in range(3)]
    for batch in batches:
        learn(own, batch)
    newest = [e for batch in batches for e in batch][-6:]
    assert [e.rewards.tolist() for e in own._memory] == [e.rewards.tolist() for e in newest]


def test_actions_count():
    own = trained(model("rrd"), batches=5)
    (e,) = random_episodes(np.random.default_rng(5), count=1)
    changed = type(e)(e.observations, (e.actions + 1) % 3, e.rewards)
    (before,), (after,) = (own._of_all(own.attribute, [x]) for x in (e, changed))
    assert not np.allclose(before, after)
