"""Pictures in other colours."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.networks.colours import shift_colours


def pictures(*shape, dtype=torch.uint8):
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@given(st.integers(0, 2**31), st.integers(1, 4), st.sampled_from([torch.uint8, torch.float32]))
def test_channels_are_swapped_and_inverted_above_a_threshold(seed, count, dtype):
    before = pictures(count, 5, 6, 3, dtype=dtype)
    torch.manual_seed(seed)
    after = shift_colours(before)
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    for old, new in zip(before, after, strict=True):
        sources = [source(new[..., c], old) for c in range(3)]
        assert sorted(sources) == [0, 1, 2]


def source(channel, picture):
    """The channel of `picture` that `channel` was made from, found by trying all thresholds."""
    thresholds = torch.arange(-1, 256).view(-1, 1, 1)
    found = []
    for k in range(picture.shape[-1]):
        values = picture[..., k]
        possible = torch.where(values > thresholds, 255 - values, values)
        if (possible == channel).flatten(1).all(1).any():
            found.append(k)
    (one,) = found
    return one


def test_everything_nothing_and_only_what_is_bright_is_inverted():
    torch.manual_seed(0)
    channel = torch.tensor([0, 100, 250], dtype=torch.uint8)
    after = shift_colours(channel.view(1, 3, 1, 1).expand(4000, 3, 1, 3))
    kinds, counts = np.unique(
        after.permute(0, 2, 3, 1).reshape(-1, 3).numpy(), axis=0, return_counts=True
    )
    shares = dict(zip(map(tuple, kinds.tolist()), counts / counts.sum(), strict=True))
    assert set(shares) == {(0, 100, 250), (255, 155, 5), (0, 155, 5), (0, 100, 5)}
    assert shares[0, 100, 250] == pytest.approx(134 / 512, abs=0.03)
    assert shares[255, 155, 5] == pytest.approx(128 / 512, abs=0.03)


def test_a_sequence_keeps_its_colours():
    frame = pictures(1, 1, 4, 4, 3)
    torch.manual_seed(0)
    after = shift_colours(frame.expand(8, 7, 4, 4, 3))
    for sequence in after:
        assert all(torch.equal(sequence[0], other) for other in sequence)
    assert any(not torch.equal(after[0], other) for other in after)


@pytest.mark.parametrize("seeds", [(3, 3), (3, 4)])
def test_the_seed_decides(seeds):
    results = []
    for seed in seeds:
        torch.manual_seed(seed)
        results.append(shift_colours(pictures(16, 3, 3, 3)))
    assert torch.equal(*results) == (seeds[0] == seeds[1])
