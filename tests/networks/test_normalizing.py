import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rllib_conspec.networks.encoders import build_encoder
from rllib_conspec.networks.normalizing import Normalize, normalizes, observe


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(0, 2**16))
def test_moments_are_those_of_all_that_was_observed(sizes, seed):
    rng = np.random.default_rng(seed)
    batches = [rng.normal(rng.normal() * 5, 3, (n, 2, 2)).astype(np.float32) for n in sizes]
    normalize = Normalize(4)
    for batch in batches:
        normalize.observe(torch.from_numpy(batch))
    every = np.concatenate(batches).reshape(-1, 4)
    np.testing.assert_allclose(normalize.mean, every.mean(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(normalize.variance, every.var(axis=0), rtol=1e-3, atol=1e-3)
    assert float(normalize.count) == len(every)


def test_what_was_observed_comes_out_with_mean_0_and_deviation_1():
    seen = torch.randn(500, 3) * torch.tensor([0.1, 1.0, 1000.0]) + torch.tensor([5.0, 0.0, -9.0])
    normalize = Normalize(3)
    normalize.observe(seen)
    out = normalize(seen)
    np.testing.assert_allclose(out.mean(dim=0), np.zeros(3), atol=1e-3)
    np.testing.assert_allclose(out.std(dim=0, correction=0), np.ones(3), rtol=1e-3)


def test_before_anything_was_observed_vectors_pass_through():
    x = torch.randn(5, 3)
    assert torch.equal(Normalize(3)(x), x)


def test_outliers_are_cut_off_and_constants_are_not_blown_up():
    normalize = Normalize(2)
    normalize.observe(torch.tensor([[1.0, 4.0], [-1.0, 4.0]]))
    out = normalize(torch.tensor([[1e6, 4.001], [-1e6, 4.0]]))
    np.testing.assert_allclose(out, [[10, 0.1], [-10, 0]], atol=1e-3)


def test_an_encoder_normalises_only_where_it_is_asked_to():
    asked = build_encoder("mlp", (4,), 8, observation_range=20.0, normalize=True)
    assert normalizes(asked) and not normalizes(build_encoder("mlp", (4,), 8))
    # Pictures have a range in any case.
    assert not normalizes(build_encoder("conv", (5, 5, 3), 8, normalize=True))


def test_scale_does_not_matter_once_it_was_observed():
    torch.manual_seed(0)
    small, large = (build_encoder("mlp", (4,), 8, normalize=True) for _ in range(2))
    large.load_state_dict(small.state_dict())
    x = torch.randn(200, 4)
    observe(small, x)
    observe(nn.Sequential(large), 1000 * x + 7)  # wherever it stands in a network
    np.testing.assert_allclose(
        small(x[:9]).detach(), large(1000 * x[:9] + 7).detach(), rtol=1e-3, atol=1e-4
    )


def test_a_state_carries_what_was_observed():
    trained, restored = (build_encoder("mlp", (4,), 8, normalize=True) for _ in range(2))
    observe(trained, torch.randn(50, 4) * 9 + 3)
    restored.load_state_dict(trained.state_dict())
    x = torch.randn(5, 4)
    assert torch.equal(trained(x), restored(x))
