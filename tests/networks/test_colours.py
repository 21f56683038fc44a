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
def test_every_channel_is_one_of_the_old_ones_or_its_inverse(seed, count, dtype):
    before = pictures(count, 5, 6, 3, dtype=dtype)
    torch.manual_seed(seed)
    after = shift_colours(before)
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    for old, new in zip(before, after, strict=True):
        sources = {}
        for c in range(3):
            plain = [k for k in range(3) if torch.equal(new[..., c], old[..., k])]
            inverse = [k for k in range(3) if torch.equal(new[..., c], 255 - old[..., k])]
            (sources[c],) = plain + inverse
        assert sorted(sources.values()) == [0, 1, 2]


def test_all_48_ways_are_drawn():
    torch.manual_seed(0)
    first = shift_colours(torch.tensor([10, 20, 30]).to(torch.uint8).expand(2000, 1, 1, 3))
    assert len(np.unique(first.view(-1, 3).numpy(), axis=0)) == 48


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
