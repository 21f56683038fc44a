"""Encoders: what they compute, from raw observations of every kind."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rllib_conspec.networks.encoders import (
    ENCODERS,
    ConvEncoder,
    ImpalaEncoder,
    MlpEncoder,
    PixelConv,
    StridedEncoder,
    build_encoder,
    orthogonal,
)

SHAPES = {"conv": (5, 5, 3), "impala": (11, 8, 3), "strided": (20, 24, 3), "mlp": (4,)}


def pixels(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8))


@pytest.mark.parametrize("name", ENCODERS)
def test_features_have_the_asked_width_and_reach_every_parameter(name):
    torch.manual_seed(0)
    encoder = build_encoder(name, SHAPES[name], 7)
    observations = torch.randn(6, 4) if name == "mlp" else pixels(6, *SHAPES[name])
    z = encoder(observations)
    assert z.shape == (6, 7)
    assert z.dtype == torch.float32
    (z**2).sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in encoder.parameters())


@pytest.mark.parametrize("name", ENCODERS)
def test_observations_may_be_bytes_or_floats_in_either_precision(name):
    torch.manual_seed(0)
    encoder = build_encoder(name, SHAPES[name], 7)
    raw = pixels(3, *SHAPES[name])
    for kind in (torch.float32, torch.float64):
        assert torch.equal(encoder(raw.to(kind)), encoder(raw))
    exact = encoder.double()(raw)
    assert exact.dtype == torch.float64


@pytest.mark.parametrize("name", ENCODERS)
def test_each_observation_is_encoded_on_its_own(name):
    """Feed-forward: neither the order nor the company of an observation matters."""
    torch.manual_seed(0)
    encoder = build_encoder(name, SHAPES[name], 7).double()
    batch = pixels(5, *SHAPES[name])
    together = encoder(batch)
    for k in range(5):
        np.testing.assert_allclose(
            encoder(batch[k : k + 1])[0].detach(), together[k].detach(), atol=1e-10
        )


def test_the_first_convolution_sees_pixels_as_0_to_1_with_channels_last():
    torch.manual_seed(0)
    layer = PixelConv(3, 5, 2, stride=2, padding=1).double()
    raw = pixels(2, 3, 4, 3)
    x = raw.double().permute(0, 3, 1, 2) / 255
    expected = F.conv2d(x, layer.weight, layer.bias, stride=2, padding=1)
    np.testing.assert_allclose(layer(raw).detach(), expected.detach(), atol=1e-12)


def test_conv_encoder_is_the_papers():
    """conv(32, 3×3, same) + ReLU → linear + ReLU, on observations / 255."""
    torch.manual_seed(0)
    encoder = ConvEncoder((5, 5, 3), 16).double()
    weights, linear = encoder.patches.weight.view(32, 3, 3, 3), encoder.linear
    assert linear.weight.shape == (16, 32 * 5 * 5)
    torch.nn.init.normal_(encoder.patches.bias)
    torch.nn.init.normal_(linear.bias)
    raw = pixels(4, 5, 5, 3)
    x = raw.double().permute(0, 3, 1, 2) / 255
    x = F.relu(F.conv2d(x, weights, encoder.patches.bias, padding=1))
    # The linear layer reads the picture place by place, all channels of a place together.
    flat = x.permute(0, 2, 3, 1).flatten(1)
    expected = F.relu(flat @ linear.weight.T + linear.bias)
    np.testing.assert_allclose(encoder(raw).detach(), expected.detach(), atol=1e-12)


def test_mlp_encoder_is_two_tanh_layers_on_flat_observations():
    torch.manual_seed(0)
    encoder = MlpEncoder((2, 3), 5).double()
    first, second = (m for m in encoder if isinstance(m, torch.nn.Linear))
    x = torch.randn(4, 2, 3)
    hidden = torch.tanh(x.double().flatten(1) @ first.weight.T + first.bias)
    expected = torch.tanh(hidden @ second.weight.T + second.bias)
    np.testing.assert_allclose(encoder(x).detach(), expected.detach(), atol=1e-12)


def test_impala_encoder_has_the_papers_blocks():
    encoder = ImpalaEncoder((84, 84, 3), 256)
    convolutions = [m for m in encoder.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [m.out_channels for m in convolutions] == [16] * 5 + [32] * 10
    # Each block halves the picture: 84 → 42 → 21 → 11.
    (linear,) = (m for m in encoder if isinstance(m, torch.nn.Linear))
    assert linear.weight.shape == (256, 32 * 11 * 11)
    z = encoder(pixels(1, 84, 84, 3))
    assert z.shape == (1, 256)
    assert (z >= 0).all()


@pytest.mark.parametrize("shape", [(84, 84, 3), (7, 10, 1), (1, 1, 3), (16, 9, 4)])
def test_impala_encoder_takes_any_size(shape):
    assert ImpalaEncoder(shape, 5)(pixels(2, *shape)).shape == (2, 5)


def test_strided_encoder_is_two_convolutions_and_a_linear_layer():
    torch.manual_seed(0)
    encoder = StridedEncoder((84, 84, 3), 9).double()
    first, second = (m for m in encoder if isinstance(m, torch.nn.Conv2d))
    (linear,) = (m for m in encoder if isinstance(m, torch.nn.Linear))
    raw = pixels(2, 84, 84, 3)
    x = raw.double().permute(0, 3, 1, 2) / 255
    x = F.relu(F.conv2d(x, first.weight, first.bias, stride=4))
    x = F.relu(F.conv2d(x, second.weight, second.bias, stride=2))
    assert x.shape == (2, 32, 9, 9)
    expected = F.relu(linear(x.flatten(1)))
    np.testing.assert_allclose(encoder(raw).detach(), expected.detach(), atol=1e-12)


def test_strided_encoder_refuses_pictures_that_its_strides_would_skip():
    assert StridedEncoder((20, 31, 1), 5)(pixels(2, 20, 31, 1)).shape == (2, 5)
    with pytest.raises(ValueError, match=r"at least 20×20, not 19×84; use encoder 'conv'"):
        StridedEncoder((19, 84, 3), 5)


def test_orthogonal_layers_start_orthogonal_without_bias():
    torch.manual_seed(0)
    layer = orthogonal(torch.nn.Linear(10, 6), gain=3.0)
    product = layer.weight @ layer.weight.T
    np.testing.assert_allclose(product.detach(), 9 * np.eye(6), atol=1e-4)
    assert (layer.bias == 0).all()


def test_what_cannot_be_encoded_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="conv, impala, strided, mlp"):
        build_encoder("resnet", (5, 5, 3), 8)
    for name in ("conv", "impala", "strided"):
        with pytest.raises(ValueError, match="use encoder 'mlp'"):
            build_encoder(name, (17,), 8)
    assert build_encoder("mlp", (5, 5, 3), 8)(pixels(2, 5, 5, 3)).shape == (2, 8)
