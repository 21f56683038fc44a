"""Encoders: what they compute, from raw observations of every kind."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.encoders import (
    ENCODERS,
    ConvEncoder,
    ImpalaEncoder,
    MlpEncoder,
    PixelConv,
    StridedEncoder,
    build_encoder,
    orthogonal,
    resolve_encoder,
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


@pytest.mark.parametrize("top", [255.0, 10.0, 1.0])
def test_the_first_convolution_sees_pixels_as_0_to_1_with_channels_last(top):
    torch.manual_seed(0)
    options = {"stride": 2, "padding": 1, "observation_range": top, "channels": "last"}
    layer = PixelConv(3, 5, 2, **options).double()
    raw = pixels(2, 3, 4, 3)
    x = raw.double().permute(0, 3, 1, 2) / top
    expected = F.conv2d(x, layer.weight, layer.bias, stride=2, padding=1)
    np.testing.assert_allclose(layer(raw).detach(), expected.detach(), atol=1e-10)


class Old:
    """The encoders of ordinary pictures as they were before ranges and channel orders."""

    @staticmethod
    def conv(encoder, frames):
        padded = nn.functional.pad(frames, (0, 0, 1, 1, 1, 1))
        patches = padded.unfold(1, 3, 1).unfold(2, 3, 1).flatten(3).flatten(1, 2)
        x = patches.to(encoder.patches.weight.dtype) * (1 / 255)
        return encoder.linear(encoder.patches(x).relu_().flatten(1)).relu_()

    @staticmethod
    def impala(encoder, frames):
        first, *others = encoder
        x = frames.permute(0, 3, 1, 2).to(first.weight.dtype)
        x = first._conv_forward(x, first.weight * (1 / 255), first.bias)
        for layer in others:
            x = layer(x)
        return x

    strided = impala

    @staticmethod
    def mlp(encoder, observations):
        return nn.Sequential(*encoder)(observations.to(encoder[1].weight.dtype))


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ordinary_observations_are_encoded_as_ever_to_the_bit(name, dtype):
    torch.manual_seed(0)
    shape = SHAPES[name] if name in ("conv", "mlp") else (84, 84, 3)
    ordinary = 1.0 if name == "mlp" else 255.0
    encoder = build_encoder(name, shape, 16, observation_range=ordinary).to(dtype)
    frames = torch.randn(9, 4) if name == "mlp" else pixels(9, *shape)
    new, old = encoder(frames), getattr(Old, name)(encoder, frames)
    assert torch.equal(new, old)
    gradients = [torch.autograd.grad((z**2).sum(), [*encoder.parameters()]) for z in (new, old)]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("name", ENCODERS)
def test_values_are_divided_by_their_range(name):
    torch.manual_seed(0)
    encoder = build_encoder(name, SHAPES[name], 7, observation_range=10.0).double()
    unit = build_encoder(name, SHAPES[name], 7, observation_range=1.0).double()
    state = encoder.state_dict()
    ranges = [key for key in state if key.endswith("observation_range")]
    assert len(ranges) == 1
    unit.load_state_dict({k: v for k, v in state.items() if k not in ranges}, strict=False)
    raw = pixels(4, *SHAPES[name]) % 11
    np.testing.assert_allclose(encoder(raw).detach(), unit(raw.double() / 10).detach(), atol=1e-10)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_state_carries_the_range_it_was_trained_with(name):
    torch.manual_seed(0)
    trained = build_encoder(name, SHAPES[name], 7, observation_range=10.0)
    restored = build_encoder(name, SHAPES[name], 7, observation_range=255.0)
    raw = pixels(4, *SHAPES[name]) % 11
    restored.load_state_dict(trained.state_dict())
    assert torch.equal(restored(raw), trained(raw))


@pytest.mark.parametrize("name", ["conv", "impala", "strided"])
def test_channels_may_come_first(name):
    torch.manual_seed(0)
    last = build_encoder(name, (20, 24, 4), 7).double()
    first = build_encoder(name, (4, 20, 24), 7, channels="first").double()
    first.load_state_dict(last.state_dict())
    raw = pixels(3, 20, 24, 4)
    np.testing.assert_allclose(
        first(raw.permute(0, 3, 1, 2).contiguous()).detach(), last(raw).detach(), atol=1e-10
    )


@pytest.mark.parametrize("name", ["auto", "strided", "impala"])
def test_stacked_frames_of_atari(name):
    encoder = build_encoder(name, (4, 84, 84), 16, channels="first")
    first = next(m for m in encoder.modules() if isinstance(m, nn.Conv2d))
    assert first.in_channels == 4
    assert encoder(pixels(2, 4, 84, 84)).shape == (2, 16)


@pytest.mark.parametrize("name", ENCODERS)
def test_sizes_are_known_without_memory_for_them(name):
    shape = SHAPES[name]
    with torch.device("meta"):
        measured = build_encoder(name, shape, 100_000)
        z = measured(torch.empty(2, *shape))
    assert z.is_meta and z.shape == (2, 100_000)
    assert all(p.is_meta for p in measured.parameters())
    with torch.device("meta"):
        sizes = [p.shape for p in build_encoder(name, shape, 7).parameters()]
    assert sizes == [p.shape for p in build_encoder(name, shape, 7).parameters()]


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


def test_conv_encoder_keeps_nothing_in_its_state_but_weights_and_range():
    """Where patches are cut follows from the shape: checkpoints of any version hold the same."""
    state = ConvEncoder((5, 5, 3), 16).state_dict()
    layers = [f"{layer}.{kind}" for layer in ("patches", "linear") for kind in ("weight", "bias")]
    assert state.keys() == {"observation_range", *layers}


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
    small = r"encoder: 'strided' needs pictures of at least 20×20, not 19×84; use encoder 'conv'"
    for shape, channels in [((19, 84, 3), "last"), ((3, 19, 84), "first")]:
        with pytest.raises(OptionError, match=small):
            build_encoder("strided", shape, 5, channels=channels)


@pytest.mark.parametrize(
    ("shape", "channels", "name"),
    [
        ((17,), "last", "mlp"),
        ((6, 5), "last", "mlp"),
        ((5, 5, 3), "last", "conv"),
        ((84, 19, 3), "last", "conv"),
        ((20, 20, 3), "last", "strided"),
        ((4, 84, 84), "first", "strided"),
        ((3, 8, 84), "first", "conv"),
    ],
)
def test_auto_chooses_by_shape(shape, channels, name):
    assert resolve_encoder("auto", shape, channels) == name
    encoder = build_encoder("auto", shape, 6, channels=channels)
    assert type(encoder) is ENCODERS[name]
    assert encoder(pixels(2, *shape)).shape == (2, 6)


def test_orthogonal_layers_start_orthogonal_without_bias():
    torch.manual_seed(0)
    layer = orthogonal(torch.nn.Linear(10, 6), gain=3.0)
    product = layer.weight @ layer.weight.T
    np.testing.assert_allclose(product.detach(), 9 * np.eye(6), atol=1e-4)
    assert (layer.bias == 0).all()


def test_what_cannot_be_encoded_is_refused_with_the_way_out():
    with pytest.raises(OptionError, match="encoder: must be one of auto, conv, impala, strided, m"):
        build_encoder("resnet", (5, 5, 3), 8)
    with pytest.raises(OptionError, match='Did you mean "impala"'):
        resolve_encoder("impla", (5, 5, 3))
    for name in ("conv", "impala", "strided"):
        with pytest.raises(OptionError, match="use encoder 'mlp'"):
            build_encoder(name, (17,), 8)
    assert build_encoder("mlp", (5, 5, 3), 8)(pixels(2, 5, 5, 3)).shape == (2, 8)


def test_channels_that_cannot_be_told_apart_are_for_the_mlp():
    for name in ("auto", "conv", "impala", "strided"):
        with pytest.raises(OptionError, match=r"\(3, 3, 3\) holds the channels.*encoder 'mlp'"):
            build_encoder(name, (3, 3, 3), 8, channels="")
    assert build_encoder("mlp", (3, 3, 3), 8, channels="")(pixels(2, 3, 3, 3)).shape == (2, 8)
