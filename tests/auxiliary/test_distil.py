"""Distillation: pictures in any colours, a teacher that stays, and the loss against its formula."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from painted import OBJECTS, ROOM, Policy, pictures

from rllib_conspec.auxiliary.distil import Distil, DistilOptions, draw_waves, repaint
from rllib_conspec.errors import OptionError

# --- other colours ----------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4))
def test_pictures_are_the_formula_pixel_by_pixel(seed, count, depth):
    before = pictures(count, 5, 6, depth)
    torch.manual_seed(seed)
    after = repaint(before)
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    torch.manual_seed(seed)
    weight, phase = draw_waves(count, depth, None)
    expected = np.empty(before.shape)
    for n, y, x, c in np.ndindex(before.shape):
        colour = before[n, y, x].tolist()
        at = sum(v / 255 * float(w) for v, w in zip(colour, weight[n, :, c], strict=True))
        expected[n, y, x, c] = 127.5 + 127.5 * math.sin(at + float(phase[n, 0, c]))
    # Brightness is rounded down, which float32 and Python may do differently near a whole number.
    off = after.numpy() - expected
    assert (off > -1.001).all() and (off < 0.001).all()


@given(st.integers(0, 2**31), st.sampled_from([torch.uint8, torch.float32]))
def test_what_has_one_colour_has_one_colour_afterwards(seed, dtype):
    palette = pictures(6, 3, dtype=dtype)
    painted = torch.randint(6, (4, 7, 8), generator=torch.Generator().manual_seed(2))
    torch.manual_seed(seed)
    after = repaint(palette[painted]).float()
    # A matrix product may sum its last rows in another order: up to one step of brightness.
    step = 1.0 if dtype == torch.uint8 else 1e-2
    for picture, where in zip(after, painted, strict=True):
        for number in range(6):
            found = picture[where == number]
            assert len(found) == 0 or (found - found[0]).abs().max() <= step


def many(colours):
    """The colours of 20,000 pictures, each of which has all of these: [20000, n, rgb]."""
    torch.manual_seed(0)
    picture = colours.to(torch.uint8)
    return repaint(picture.expand(20_000, 1, len(colours), 3))[:, 0].long()


@pytest.fixture(scope="module")
def repainted():
    return many(torch.cat([OBJECTS, ROOM]))


def test_colours_become_any_colour(repainted):
    """Each of the 64 cells of the colour cube. A sine spends a third of its time in the first and
    in the last quarter of its range.
    """
    for colour in (repainted // 64 @ torch.tensor([16, 4, 1])).T:
        shares = torch.bincount(colour, minlength=64) / len(colour)
        assert shares.min() > 0.7 * (1 / 6) ** 3 and shares.max() < 1.3 * (1 / 3) ** 3
    assert (repainted[:, :6] < 50).all(-1).float().mean(0).min() > 0.02  # dark ones, too


def test_objects_stay_visible(repainted):
    things, room = repainted[:, :6, None], repainted[:, None, 6:]
    assert ((things - room).abs().amax(-1) < 20).float().mean() < 0.02
    assert ((repainted[:, 6] - repainted[:, 7]).abs().amax(-1) < 20).float().mean() < 0.05


def test_new_colours_of_different_things_have_little_to_do_with_each_other(repainted):
    """While the shades of one thing stay near each other."""

    def alike(one, other):
        return float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]).float())[0, 1])

    for thing in range(6):
        assert abs(alike(repainted[:, thing], repainted[:, 6])) < 0.35
    shades = many(torch.stack([OBJECTS, OBJECTS * 0.85]).flatten(0, 1))
    for thing in range(6):
        assert alike(shades[:, thing], shades[:, thing + 6]) > 0.7


def test_sequences_keep_their_colours_and_channels_may_come_first():
    frame = pictures(1, 1, 4, 4, 3)
    torch.manual_seed(0)
    after = repaint(frame.expand(8, 7, 4, 4, 3)).float()
    for sequence in after:
        assert all((sequence[0] - other).abs().max() <= 1 for other in sequence)
    assert any((after[0] - other).abs().max() > 50 for other in after)
    torch.manual_seed(0)
    first = repaint(frame.expand(8, 7, 4, 4, 3).permute(0, 1, 4, 2, 3), channels="first")
    assert torch.equal(first.permute(0, 1, 3, 4, 2).float(), after)


def test_pictures_may_have_another_range():
    before = pictures(16, 5, 6, 3, dtype=torch.float32)
    torch.manual_seed(0)
    expected = repaint(before) / 255
    torch.manual_seed(0)
    found = repaint(before / 255, brightest=1.0)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


# --- the loss ---------------------------------------------------------------------------------


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
    """KL from the policy of the first time, on these pictures and on others, by hand."""
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(*shape, 5, 5, 3)
    mask = torch.rand(shape) < 0.6 if masked else None
    loss = Distil(DistilOptions(coeff=0.5), policy.encoder)
    loss_of(loss, policy, frames, mask)
    taught = policy(frames)[0].detach()
    moved(policy)
    found, batch = loss_of(loss, policy, frames, mask)
    torch.manual_seed(7)
    inputs, _ = policy(repaint(frames))
    terms = []
    for where in (torch.ones(shape) if mask is None else mask).nonzero().tolist():
        at = tuple(where)
        p = taught[at].softmax(-1)
        for q in (batch.inputs[at].softmax(-1), inputs[at].softmax(-1)):
            terms.append(sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True)))
    torch.testing.assert_close(found, 0.5 * 2 * torch.stack(terms).mean())
    assert found > 0


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


def test_options_are_checked():
    with pytest.raises(OptionError, match="coeff"):
        DistilOptions(coeff=0.0)
    with pytest.raises(OptionError, match="is for pictures"):
        Distil.check(DistilOptions(), (17,))
