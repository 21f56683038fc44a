"""Pictures moved and partly hidden: pixel by pixel as a slow version does it, and how often."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.augmenting import cut_out, pad_for, shift


def pictures(*shape, dtype=torch.uint8):
    """No pixel is black."""
    return torch.randint(1, 256, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def literal(frames, pad, corners):
    """[N, T, h, w, c]: pixel (y, x) is the one that lies so far above and left in the picture with
    its black border.
    """
    moved = np.zeros_like(frames)
    _, _, height, width, _ = frames.shape
    for n, t, y, x, c in np.ndindex(frames.shape):
        above, left = y + corners[n][0] - pad, x + corners[n][1] - pad
        if 0 <= above < height and 0 <= left < width:
            moved[n, t, y, x, c] = frames[n, t, above, left, c]
    return moved


@settings(max_examples=30)
@given(
    st.integers(0, 2**31),
    st.integers(1, 3),
    st.sampled_from([torch.uint8, torch.float32]),
    st.sampled_from(["first", "last"]),
)
def test_pictures_are_moved_pixel_by_pixel(seed, pad, dtype, channels):
    before = pictures(3, 2, 5, 4, 3, dtype=dtype)
    torch.manual_seed(seed)
    given_ = before.movedim(-1, -3) if channels == "first" else before
    after = shift(given_, pad, channels)
    after = after.movedim(-3, -1) if channels == "first" else after
    torch.manual_seed(seed)
    corners = torch.randint(2 * pad + 1, (3, 2)).tolist()
    assert after.dtype == dtype
    np.testing.assert_array_equal(after.numpy(), literal(before.numpy(), pad, corners))


def test_all_moves_are_equally_likely_and_one_in_nine_is_none():
    torch.manual_seed(0)
    before = pictures(1, 5, 5, 3).expand(9000, 5, 5, 3)
    kinds, counts = shift(before, 1).flatten(1).unique(dim=0, return_counts=True)
    assert len(kinds) == 9
    assert counts.min() > 850 and counts.max() < 1150
    assert (kinds == before[0].flatten()).all(1).sum() == 1


def test_single_pictures_are_moved_each_on_its_own_and_sequences_as_one():
    torch.manual_seed(0)
    frame = pictures(1, 5, 5, 3)
    assert len(shift(frame.expand(40, 5, 5, 3), 1).flatten(1).unique(dim=0)) > 4
    for sequence in shift(frame.expand(6, 10, 5, 5, 3), 1):
        assert len(sequence.flatten(1).unique(dim=0)) == 1


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(3, 30), st.integers(3, 30))
def test_a_rectangle_is_hidden_and_nothing_else(seed, height, width):
    torch.manual_seed(seed)
    before = pictures(4, 2, height, width, 3)
    after = cut_out(before)
    for old, new in zip(before, after, strict=True):
        hidden = (new != old).any(-1).any(0)
        rows, columns = hidden.any(1).nonzero(), hidden.any(0).nonzero()
        tall, wide = (int(x.max() - x.min()) + 1 for x in (rows, columns))
        assert hidden.sum() == tall * wide, "not a rectangle"
        for size, side in ((tall, height), (wide, width)):
            assert max(1, round(side / 8)) <= size <= max(1, round(side / 3))
        assert (new[:, hidden] == 0).all() and torch.equal(new[:, ~hidden], old[:, ~hidden])
    first = cut_out(before.movedim(-1, -3), "first")
    assert first.shape == (4, 2, 3, height, width) and (first == 0).any()


def test_every_pixel_is_hidden_now_and_then():
    torch.manual_seed(0)
    shares = (cut_out(pictures(1, 6, 6, 3).expand(4000, 6, 6, 3)) == 0)[..., 0].float().mean(0)
    assert shares.min() > 0.01 and shares.max() < 0.3


@pytest.mark.parametrize(
    ("shape", "pad", "expected"),
    [((84, 84, 3), None, 6), ((4, 84, 84), None, 6), ((5, 5, 3), None, 1), ((60, 80, 3), 9, 9)],
)
def test_how_far_pictures_are_moved(shape, pad, expected):
    assert pad_for(shape, pad) == expected


@pytest.mark.parametrize(
    ("shape", "pad", "says"),
    [
        ((17,), None, "is for pictures"),
        ((5, 5, 3), 5, "pad: a crop out of 15 pixels can miss a picture of 5 altogether"),
    ],
)
def test_what_cannot_be_moved(shape, pad, says):
    with pytest.raises(OptionError, match=says):
        pad_for(shape, pad)
