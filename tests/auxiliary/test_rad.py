"""RAD: what the learner sees, and that a policy trained on it holds where a plain one does not."""

import pytest
import torch
from painted import Policy, pictures

from rllib_conspec.auxiliary.drac import shift_colours
from rllib_conspec.auxiliary.rad import CHANGES, RAD, RADOptions
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.augmenting import cut_out, shift


def same_draw(change, frames, channels):
    return {
        "crop": lambda: shift(frames, 1, channels),
        "cutout": lambda: cut_out(frames, channels),
        "colours": lambda: shift_colours(frames, 255.0, channels),
    }[change]()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("channels", ["first", "last"])
@pytest.mark.parametrize("shape", [(6, 4), (6,)])
def test_pictures_are_changed_as_asked(change, channels, shape):
    policy = Policy(channels=channels)
    frames = pictures(*shape, *((3, 5, 5) if channels == "first" else (5, 5, 3)))
    rad = RAD(RADOptions(change=change), policy.encoder)
    assert rad.augments
    torch.manual_seed(3)
    found = rad.augment(frames)
    torch.manual_seed(3)
    assert torch.equal(found, same_draw(change, frames, channels))
    assert (found.shape, found.dtype) == (frames.shape, frames.dtype)
    assert not torch.equal(found, frames)


def test_it_adds_no_loss_and_has_nothing_that_learns():
    policy = Policy()
    rad = RAD(RADOptions(), policy.encoder)
    assert rad.loss(policy.batch(pictures(6, 5, 5, 3))) is None
    assert list(rad.parameters()) == [] and rad.state_dict() == {}


def trained(change):
    """A policy that learned which of three things stands in the middle, from pictures in which it
    is always exactly there; with or without RAD.
    """
    torch.manual_seed(0)
    policy = Policy(dim=64)
    rad = RAD(RADOptions(), policy.encoder) if change else None
    frames, answers = things()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(300):
        seen = rad.augment(frames) if change else frames
        loss = torch.nn.functional.cross_entropy(policy(seen)[0], answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return policy


def things():
    """Two pixels upright, side by side, or aslant: once they are moved, no place tells them."""
    frames = torch.zeros(3, 5, 5, 3, dtype=torch.uint8)
    frames[:, 2, 2] = 255
    for i, (y, x) in enumerate([(1, 2), (2, 1), (1, 1)]):
        frames[i, y, x] = 255
    return frames.repeat(10, 1, 1, 1), torch.arange(3).repeat(10)


def test_a_policy_holds_under_shifts_where_a_plain_one_does_not():
    frames, answers = things()
    torch.manual_seed(9)
    moved, expected = shift(frames.repeat(20, 1, 1, 1), 1), answers.repeat(20)
    right = {}
    for change in (False, True):
        policy = trained(change)
        assert (policy(frames)[0].argmax(-1) == answers).all(), "what it was trained on"
        right[change] = float((policy(moved)[0].argmax(-1) == expected).float().mean())
    assert right[True] > 0.95
    assert right[False] < 0.8


@pytest.mark.parametrize(
    ("options", "shape", "says"),
    [
        ({}, (17,), "is for pictures"),
        ({"pad": 7}, (3, 7, 9), "pad: a crop out of 21 pixels can miss a picture of 7"),
        ({"change": "crops"}, (5, 5, 3), 'Did you mean "crop"'),
        ({"change": "cutout", "pad": 2}, (9, 9, 3), "pad: is for change crop, not cutout"),
    ],
)
def test_what_is_refused(options, shape, says):
    with pytest.raises(OptionError, match=says):
        RAD.check(RADOptions(**options), shape)
