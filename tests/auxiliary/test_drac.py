"""DrAC: pictures in other colours, and the loss against its formula."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.auxiliary.drac import DrAC, DrACOptions, shift_colours
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.encoders import build_encoder


def pictures(*shape, dtype=torch.uint8):
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


# --- other colours ----------------------------------------------------------------------------


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


def test_channels_may_come_first():
    before = pictures(4, 2, 5, 6, 3)
    torch.manual_seed(0)
    expected = shift_colours(before)
    torch.manual_seed(0)
    after = shift_colours(before.permute(0, 1, 4, 2, 3), channels="first")
    assert torch.equal(after.permute(0, 1, 3, 4, 2), expected)


def test_pictures_may_have_another_range():
    before = pictures(16, 5, 6, 3, dtype=torch.float32)
    torch.manual_seed(0)
    expected = shift_colours(before) / 255
    torch.manual_seed(0)
    torch.testing.assert_close(shift_colours(before / 255, brightest=1.0), expected)


# --- the loss ---------------------------------------------------------------------------------


class Policy(nn.Module):
    """Logits of three actions and a value, from pictures of 5 × 5."""

    def __init__(self, **view) -> None:
        super().__init__()
        shape = (3, 5, 5) if view.get("channels") == "first" else (5, 5, 3)
        self.encoder = build_encoder("conv", shape, 8, **view)
        self.logits, self.value = nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, observations):
        z = self.encoder(observations.flatten(0, -4)).unflatten(0, observations.shape[:-3])
        return self.logits(z), self.value(z).squeeze(-1)

    def batch(self, observations, mask=None) -> PolicyBatch:
        inputs, values = self(observations)
        return PolicyBatch(observations, mask, inputs, values, forward=self.forward, kl=kl)


def kl(before, after):
    distributions = (torch.distributions.Categorical(logits=x) for x in (before, after))
    return torch.distributions.kl_divergence(*distributions)


def loss_of(batch, policy, seed=7, **values):
    torch.manual_seed(seed)
    return DrAC(DrACOptions(**values), policy.encoder).loss(batch)


@pytest.mark.parametrize("shape", [(6, 4), (6,)])
@pytest.mark.parametrize("masked", [True, False])
def test_the_loss_is_the_formula(shape, masked):
    """KL to the policy on the pictures as they are and half the squared change of the value, by
    hand; padding does not count.
    """
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(*shape, 5, 5, 3)
    mask = torch.rand(shape) < 0.6 if masked else None
    batch = policy.batch(frames, mask)
    loss = loss_of(batch, policy, coeff=0.5)
    torch.manual_seed(7)
    inputs, values = policy(shift_colours(frames))
    terms = []
    for where in (torch.ones(shape) if mask is None else mask).nonzero().tolist():
        at = tuple(where)
        p, q = batch.inputs[at].softmax(-1), inputs[at].softmax(-1)
        divergence = sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True))
        terms.append(divergence + (batch.values[at] - values[at]) ** 2 / 2)
    torch.testing.assert_close(loss, 0.5 * torch.stack(terms).mean())
    assert loss > 0


def test_what_the_policy_does_on_the_pictures_as_they_are_gets_no_gradient():
    torch.manual_seed(0)
    policy = Policy()
    batch = policy.batch(pictures(6, 5, 5, 3))
    loss = loss_of(batch, policy)
    for output in (batch.inputs, batch.values):
        (gradient,) = torch.autograd.grad(loss, [output], retain_graph=True, allow_unused=True)
        assert gradient is None
    loss.backward()
    assert all(p.grad.abs().max() > 0 for p in policy.parameters())


def test_pictures_are_read_as_the_encoder_reads_them():
    """The same pictures in another layout and range have the same loss."""
    torch.manual_seed(0)
    plain = Policy()
    other = Policy(channels="first", observation_range=1.0)
    weights = {k: v for k, v in plain.state_dict().items() if "range" not in k}
    other.load_state_dict(weights, strict=False)
    frames = pictures(6, 5, 5, 3)
    moved = frames.permute(0, 3, 1, 2).float() / 255
    found = loss_of(other.batch(moved), other)
    torch.testing.assert_close(found, loss_of(plain.batch(frames), plain))


@pytest.mark.parametrize("name", ["conv", "impala", "strided", "mlp"])
def test_every_encoder_says_how_it_reads(name):
    encoder = build_encoder(name, (3, 24, 20), 4, observation_range=9.0, channels="first")
    assert DrAC(DrACOptions(), encoder).view == {"brightest": 9.0, "channels": "first"}


def test_it_has_no_parameters_of_its_own():
    assert list(DrAC(DrACOptions(), Policy().encoder).parameters()) == []


# --- options ----------------------------------------------------------------------------------


def test_the_weight_must_be_more_than_nothing():
    assert DrACOptions().coeff == 0.2
    for value in (0.0, -1.0, "much"):
        with pytest.raises(OptionError) as error:
            DrACOptions(coeff=value)
        assert error.value.option == "coeff"


def test_vectors_have_no_colours():
    DrAC.check(DrACOptions(), (5, 5, 3))
    with pytest.raises(OptionError, match="is for pictures") as error:
        DrAC.check(DrACOptions(), (17,))
    assert error.value.option == "coeff"
