"""CURL: the loss against its formula, its keys, and that pictures become known again."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from painted import Policy, pictures

from rllib_conspec.auxiliary.curl import CURL, CURLOptions, draw_frames, logits
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.augmenting import shift


@given(st.integers(0, 2**31), st.integers(2, 7), st.integers(1, 5), st.floats(0.1, 100))
def test_logits_give_the_probabilities_of_the_formula(seed, count, dim, scale):
    generator = torch.Generator().manual_seed(seed)
    q, k, w = (
        scale * torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((count, dim), (count, dim), (dim, dim))
    )
    found = logits(q, k, w)
    assert (found.amax(-1) == 0).all()
    q, k, w = q.tolist(), k.tolist(), w.tolist()
    for i in range(count):
        products = [
            sum(q[i][a] * w[a][b] * k[j][b] for a in range(dim) for b in range(dim))
            for j in range(count)
        ]
        total = sum(math.exp(p - max(products)) for p in products)
        expected = [math.exp(p - max(products)) / total for p in products]
        assert found[i].softmax(-1).tolist() == pytest.approx(expected, abs=1e-6)


@settings(max_examples=30)
@given(
    st.integers(0, 2**31),
    st.sampled_from([(6, 4), (9,)]),
    st.booleans(),
    st.sampled_from(["first", "last"]),
)
def test_the_loss_is_the_formula_on_two_views_of_real_steps(seed, shape, masked, channels):
    torch.manual_seed(seed)
    policy = Policy(channels=channels)
    sides = (3, 5, 5) if channels == "first" else (5, 5, 3)
    frames = pictures(*shape, *sides)
    mask = torch.rand(shape) < 0.6 if masked else None
    if masked:
        mask.view(-1)[0] = True
    curl = CURL(CURLOptions(coeff=0.5, batch=5, latent_dim=4), policy.encoder)
    with torch.no_grad():
        for parameter in curl.keys.parameters():  # or they would be the queries' still
            parameter += 0.1 * torch.randn(parameter.shape)
    batch = policy.batch(frames, mask)
    torch.manual_seed(seed)
    found = curl.loss(batch)
    torch.manual_seed(seed)
    real = frames.flatten(0, len(shape) - 1)
    real = real if mask is None else real[mask.flatten()]
    chosen = real[torch.randperm(len(real))[:5]]
    one, other = shift(chosen, 1, channels), shift(chosen, 1, channels)
    q, k = curl.latent(policy.encoder(one)), curl.keys(other)
    terms, right = [], 0
    for i in range(len(chosen)):
        alike = torch.stack([q[i] @ curl.bilinear @ k[j] for j in range(len(chosen))])
        terms.append(-torch.log(alike[i].exp() / alike.exp().sum()))
        right += int(alike.argmax() == i)
    torch.testing.assert_close(found, 0.5 * torch.stack(terms).mean(), rtol=1e-4, atol=1e-5)
    assert curl.metrics()["accuracy"] == pytest.approx(right / len(chosen))


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 30))
def test_only_real_steps_are_drawn_and_none_twice(seed, count):
    torch.manual_seed(seed)
    policy = Policy()
    frames = torch.arange(24, dtype=torch.uint8).view(4, 6, 1, 1, 1).expand(4, 6, 5, 5, 3)
    mask = torch.rand(4, 6) < 0.5
    drawn = draw_frames(policy.batch(frames, mask), count)[:, 0, 0, 0].tolist()
    real = frames[..., 0, 0, 0][mask].tolist()
    assert len(drawn) == len(set(drawn)) == min(count, len(real))
    assert set(drawn) <= set(real)


def test_queries_learn_and_keys_follow():
    """k ← (1 − τ) k + τ q after every step, and no gradient besides."""
    torch.manual_seed(0)
    policy = Policy()
    curl = CURL(CURLOptions(tau=0.25, latent_dim=4), policy.encoder)
    own = {name for name, p in curl.named_parameters() if p.requires_grad}
    assert own == {"latent.weight", "latent.bias", "bilinear"}
    curl.loss(policy.batch(pictures(8, 5, 5, 3))).backward()
    learns = (*policy.encoder.parameters(), curl.latent.weight, curl.bilinear)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in learns)
    assert all(p.grad is None for p in curl.keys.parameters())
    before = [p.clone() for p in curl.keys.parameters()]
    with torch.no_grad():
        for p in (*policy.encoder.parameters(), *curl.latent.parameters()):
            p += torch.randn(p.shape)
    curl.after_step()
    now = (*policy.encoder.parameters(), *curl.latent.parameters())
    for key, old, query in zip(curl.keys.parameters(), before, now, strict=True):
        torch.testing.assert_close(key, 0.75 * old + 0.25 * query)


def learned(steps, curl, policy, frames):
    """Accuracy before and after so many steps."""
    rates = [p for p in (*policy.parameters(), *curl.parameters()) if p.requires_grad]
    optimizer = torch.optim.Adam(rates, lr=2e-3)
    shown = []
    for _ in range(steps):
        loss = curl.loss(policy.batch(frames))
        shown.append(float(curl.metrics()["accuracy"]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curl.after_step()
    return sum(shown[:10]) / 10, sum(shown[-10:]) / 10


def test_pictures_become_known_again_by_what_is_in_them():
    """And not where two views have nothing in common: the control."""
    torch.manual_seed(0)
    # A square in the middle, in one of 64 colours: it stays in sight when the picture is moved.
    frames = torch.zeros(64, 5, 5, 3, dtype=torch.uint8)
    frames[:, 1:4, 1:4] = pictures(64, 1, 1, 3)
    policy = Policy(dim=32)
    curl = CURL(CURLOptions(batch=32, latent_dim=16), policy.encoder)
    before, after = learned(300, curl, policy, frames)
    assert before < 0.15 and after > 0.4

    policy = Policy()
    blind = CURL(CURLOptions(batch=32, latent_dim=16), policy.encoder)
    _, same = learned(60, blind, policy, torch.zeros_like(frames))
    assert same < 0.15


def test_saved_and_restored_it_goes_on_to_the_digit():
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(16, 5, 5, 3)
    curl = CURL(CURLOptions(latent_dim=4), policy.encoder)
    learned(3, curl, policy, frames)
    other = CURL(CURLOptions(latent_dim=4), policy.encoder)
    torch.manual_seed(5)
    assert other.loss(policy.batch(frames)) != curl.loss(policy.batch(frames))
    other.load_state_dict(curl.state_dict())
    for loss in (curl, other):
        torch.manual_seed(5)
        loss.value = loss.loss(policy.batch(frames))
    assert curl.value == other.value


@pytest.mark.parametrize(
    ("options", "shape", "says"),
    [
        ({}, (17,), "is for pictures"),
        ({"pad": 5}, (5, 5, 3), "pad: a crop out of 15 pixels"),
        ({"tau": 0.0}, (5, 5, 3), "tau: must be more than 0"),
        ({"batch": 1}, (5, 5, 3), "batch: must be at least 2"),
    ],
)
def test_what_is_refused(options, shape, says):
    with pytest.raises(OptionError, match=says):
        CURL.check(CURLOptions(**options), shape)
