"""Distillation: a teacher that stays, and the loss against its formula."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from painted import Policy, pictures

from rllib_conspec.auxiliary.distil import SHARPNESS, Distil, DistilOptions, doubtful
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.palette import repaint


def moved(policy, seed=3):
    """The policy after some learning."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return policy


def loss_of(loss, policy, frames, mask=None):
    batch = policy.batch(frames, mask)
    torch.manual_seed(7)
    return loss.loss(batch), batch


@pytest.mark.parametrize("shape", [(6, 4), (6,)])
@pytest.mark.parametrize("masked", [True, False])
def test_the_loss_is_the_formula(shape, masked):
    """KL between the policy of the first time and the root of today's, on these pictures and on
    others, by hand.
    """
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(*shape, 5, 5, 3)
    mask = torch.rand(shape) < 0.6 if masked else None
    loss = Distil(DistilOptions(coeff=0.5), policy.encoder)
    loss_of(loss, policy, frames, mask)
    taught = policy(frames)[0].detach()
    moved(policy)
    found, batch = loss_of(loss, policy, frames, mask)
    torch.manual_seed(7)
    painted = repaint(frames.reshape(-1, 5, 5, 3))  # every picture in colours of its own
    inputs, _ = policy(painted.view(frames.shape))
    terms = []
    for where in (torch.ones(shape) if mask is None else mask).nonzero().tolist():
        at = tuple(where)
        p = taught[at].softmax(-1)
        for q in (batch.inputs[at].softmax(-1), inputs[at].softmax(-1)):
            q = q ** (1 / SHARPNESS)
            q = q / q.sum()
            terms.append(sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True)))
    torch.testing.assert_close(found, 0.5 * 2 * torch.stack(terms).mean())
    assert found > 0


def test_what_is_learned_is_the_root_of_what_is_done():
    torch.manual_seed(0)
    inputs = torch.randn(5, 6, dtype=torch.double)
    p = inputs.softmax(-1) ** (1 / SHARPNESS)
    found = doubtful(inputs, spaces.Discrete(6)).softmax(-1)
    torch.testing.assert_close(found, p / p.sum(-1, keepdim=True))

    def density(inputs, x):
        mean, log_deviation = inputs.chunk(2, -1)
        return torch.distributions.Normal(mean, log_deviation.exp()).log_prob(x).sum(-1)

    actions, x = spaces.Box(-1, 1, (3,)), torch.randn(100, 5, 3, dtype=torch.double)
    scale = SHARPNESS * density(doubtful(inputs, actions), x) - density(inputs, x)
    torch.testing.assert_close(scale, scale[:1].expand(100, 5))


def test_the_teacher_is_no_part_that_learns_and_is_saved():
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(8, 5, 5, 3)
    loss = Distil(DistilOptions(), policy.encoder)
    loss_of(loss, policy, frames)
    assert list(loss.parameters()) == []
    moved(policy)
    expected, _ = loss_of(loss, policy, frames)
    other = Distil(DistilOptions(), policy.encoder)
    other.load_state_dict(loss.state_dict())
    torch.testing.assert_close(loss_of(other, policy, frames)[0], expected)
    new = Distil(DistilOptions(), policy.encoder)  # its teacher would be the policy of today
    assert not torch.allclose(loss_of(new, policy, frames)[0], expected)
    empty = Distil(DistilOptions(), policy.encoder)
    other.load_state_dict(empty.state_dict())  # from before the first loss
    torch.testing.assert_close(loss_of(other, policy, frames)[0], loss_of(new, policy, frames)[0])


def test_learning_it_brings_the_policy_back_to_its_teacher():
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(64, 5, 5, 3)
    loss = Distil(DistilOptions(), policy.encoder)
    loss_of(loss, policy, frames)
    moved(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    losses = []
    for _ in range(150):
        value = loss.loss(policy.batch(frames))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:20])


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("channels", ["first", "last"])
def test_half_of_the_environments_are_played_in_other_colours(count, channels):
    shape = (3, 5, 5) if channels == "first" else (5, 5, 3)
    policy, seen = Policy(channels=channels), pictures(count, *shape)
    before = seen.clone()
    shown = Distil.shown(seen, policy.encoder, torch.Generator().manual_seed(0))
    assert torch.equal(seen, before), "what episodes keep is not painted"
    other = -(-count // 2)
    assert torch.equal(shown[other:], seen[other:])
    expected = repaint(seen[:other], channels=channels, generator=torch.Generator().manual_seed(0))
    assert torch.equal(shown[:other], expected) and not torch.equal(expected, seen[:other])


def test_options_are_checked():
    with pytest.raises(OptionError, match="coeff"):
        DistilOptions(coeff=0.0)
    with pytest.raises(OptionError, match="is for pictures"):
        Distil.check(DistilOptions(), (17,))
