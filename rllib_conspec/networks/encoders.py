"""Encoders of single observations: `conv` (keys), `impala` and `strided` (pixels), `mlp` (vectors).

Each takes raw observations [N, *shape], uint8 pixels included, and returns features [N, dim].
Frames stay uint8 until here, so that memories, object store and network never carry floats of them.
Shapes are the environment's: pictures have their channels last or first, and values up to some
`observation_range`. The range is kept with the weights, which only make sense with it.
ConSpec and the policy use the same classes with parameters of their own (the paper keeps them apart
to avoid interference).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.networks.normalizing import Normalize


def orthogonal(layer: nn.Linear | nn.Conv2d, gain: float = math.sqrt(2)) -> nn.Linear | nn.Conv2d:
    """Orthogonal weights and zero bias, the initialisation of the paper's PPO."""
    if layer.weight.is_meta:  # only the sizes are wanted
        return layer
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def picture_sides(shape: Sequence[int], channels: str) -> tuple[int, int, int]:
    """Height, width and number of channels of a picture."""
    return (shape[1], shape[2], shape[0]) if channels == "first" else tuple(shape)


def _range_of(observation_range: float) -> Tensor:
    # A tensor of one element: RLlib turns those without dimensions into Python numbers.
    return torch.tensor([observation_range], dtype=torch.float32)


def _channels_last(frames: Tensor, channels: str) -> Tensor:
    """A view [N, height, width, channels]."""
    return frames.permute(0, 2, 3, 1) if channels == "first" else frames


class PixelConv(nn.Conv2d):
    """A convolution of raw pictures: [N, height, width, channels] in 0..range, seen as 0..1.

    The weights are scaled instead of the pixels, which are a thousand times as many.
    """

    def __init__(
        self, *sizes: int, observation_range: float, channels: str, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.channels = channels
        self.register_buffer("observation_range", _range_of(observation_range))

    def forward(self, frames: Tensor) -> Tensor:
        x = _channels_last(frames, self.channels).permute(0, 3, 1, 2).to(self.weight.dtype)
        return self._conv_forward(x, self.weight * (1 / self.observation_range), self.bias)


class ConvEncoder(nn.Module):
    """One 3×3 convolution of 32 channels and a linear layer (multi-key-to-door).

    The images are 5×5: a convolution kernel spends its time on set-up and layout. Cut into patches
    they are one matrix product, three times as fast on a CPU.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dim: int,
        observation_range: float = 255.0,
        channels: str = "last",
    ) -> None:
        super().__init__()
        height, width, depth = picture_sides(shape, channels)
        self.channels = channels
        self.register_buffer("observation_range", _range_of(observation_range))
        self.patches = orthogonal(nn.Linear(9 * depth, 32))
        self.linear = orthogonal(nn.Linear(32 * height * width, dim))
        # Where the numbers of all patches stand in a padded picture: copied one by one they take
        # less time than in runs of three, which is what unfolding comes to.
        places = torch.arange((height + 2) * (width + 2) * depth).view(height + 2, width + 2, depth)
        cut = places.unfold(0, 3, 1).unfold(1, 3, 1).flatten()
        self.register_buffer("_cut", cut, persistent=False)

    def forward(self, frames: Tensor) -> Tensor:
        pixels = _channels_last(frames, self.channels).to(self.patches.weight.dtype)
        padded = nn.functional.pad(pixels * (1 / self.observation_range), (0, 0, 1, 1, 1, 1))
        patches = padded.flatten(1).index_select(1, self._cut)
        x = self.patches(patches.unflatten(1, (-1, self.patches.in_features)))
        return self.linear(x.relu_().flatten(1)).relu_()


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class ImpalaEncoder(nn.Sequential):
    """Three IMPALA blocks of 16, 32, 32 channels and a linear layer (OrangeTree, Atari)."""

    def __init__(
        self,
        shape: Sequence[int],
        dim: int,
        observation_range: float = 255.0,
        channels: str = "last",
    ) -> None:
        height, width, depth = picture_sides(shape, channels)
        pixels = {"observation_range": observation_range, "channels": channels}
        layers: list[nn.Module] = []
        for out in (16, 32, 32):
            first = not layers
            layers += [
                PixelConv(depth, out, 3, padding=1, **pixels)
                if first
                else nn.Conv2d(depth, out, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(out),
                ResidualBlock(out),
            ]
            depth, height, width = out, (height + 1) // 2, (width + 1) // 2
        super().__init__(
            *layers,
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(depth * height * width, dim)),
            nn.ReLU(),
        )
        # Frames arrive with their channels last: weights in the same order spare every layer a
        # copy, 30 % of the forward pass on a CPU.
        self.to(memory_format=torch.channels_last)


class StridedEncoder(nn.Sequential):
    """Two strided convolutions of 16 and 32 channels and a linear layer: pixels on a CPU.

    Not the paper's: it costs a twentieth of `impala`, in a forward and in a backward pass, and is
    enough to tell what is in a picture of 84×84.
    """

    smallest = 20  # pixels of height and width: the first convolution then leaves 4×4

    def __init__(
        self,
        shape: Sequence[int],
        dim: int,
        observation_range: float = 255.0,
        channels: str = "last",
    ) -> None:
        height, width, depth = picture_sides(shape, channels)
        if min(height, width) < self.smallest:
            raise OptionError(
                "encoder",
                f"'strided' needs pictures of at least {self.smallest}×{self.smallest}, not "
                f"{height}×{width}; use encoder 'conv'.",
            )
        height, width = (((side - 8) // 4 + 1 - 4) // 2 + 1 for side in (height, width))
        super().__init__(
            orthogonal(
                PixelConv(
                    depth, 16, 8, stride=4, observation_range=observation_range, channels=channels
                )
            ),
            nn.ReLU(),
            orthogonal(nn.Conv2d(16, 32, 4, stride=2)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(32 * height * width, dim)),
            nn.ReLU(),
        )
        self.to(memory_format=torch.channels_last)


class MlpEncoder(nn.Sequential):
    """Two tanh layers (continuous control); observations of any shape are flattened.

    Where no range of them is known, they are normalised by what was played (`normalize`).
    """

    def __init__(
        self,
        shape: Sequence[int],
        dim: int,
        observation_range: float = 1.0,
        channels: str = "last",
        normalize: bool = False,
    ) -> None:
        super().__init__(
            Normalize(math.prod(shape)) if normalize else nn.Flatten(),
            orthogonal(nn.Linear(math.prod(shape), dim)),
            nn.Tanh(),
            orthogonal(nn.Linear(dim, dim)),
            nn.Tanh(),
        )
        self.channels = channels
        # Normalised observations have a range of their own.
        self.register_buffer(
            "observation_range", _range_of(1.0 if normalize else observation_range)
        )

    def forward(self, observations: Tensor) -> Tensor:
        x = observations.to(self[1].weight.dtype)
        return super().forward(x * (1 / self.observation_range))


ENCODERS = {
    "conv": ConvEncoder,
    "impala": ImpalaEncoder,
    "strided": StridedEncoder,
    "mlp": MlpEncoder,
}
ENCODER_NAMES = ("auto", *ENCODERS)


def build_encoder(
    name: str,
    shape: Sequence[int],
    dim: int,
    *,
    observation_range: float | None = None,
    channels: str = "last",
    normalize: bool = False,
) -> nn.Module:
    """The encoder called `name` for observations of this shape, with `dim` features.

    `observation_range` is 255 for pictures and 1 for `mlp`, unless it is given. `normalize` says
    that vectors have no range: `mlp` then scales them by their running mean and deviation.
    """
    name = resolve_encoder(name, shape, channels)
    if observation_range is None:
        observation_range = 1.0 if name == "mlp" else 255.0
    if name == "mlp":
        return MlpEncoder(shape, dim, observation_range, channels, normalize)
    return ENCODERS[name](shape, dim, observation_range, channels)


def resolve_encoder(name: str, shape: Sequence[int], channels: str = "last") -> str:
    """The name of an encoder that can read such observations: `name`, or what `auto` stands for.

    An OptionError names `encoder`. `channels` is "" where they cannot be told from other sides.
    """
    if name not in ENCODER_NAMES:
        raise OptionError(
            "encoder",
            f"must be one of {', '.join(ENCODER_NAMES)}, not {name!r}."
            + did_you_mean(name, ENCODER_NAMES),
        )
    if name == "mlp" or (name == "auto" and len(shape) != 3):
        return "mlp"
    if len(shape) != 3:
        raise OptionError(
            "encoder",
            f"{name!r} needs pictures, which have height, width and channels, not observations of "
            f"shape {tuple(shape)}; use encoder 'mlp'.",
        )
    if not channels:
        raise OptionError(
            "encoder",
            f"{name!r} cannot tell which side of observations of shape {tuple(shape)} holds the "
            "channels: wrap the environment so that these are last and fewer than height and "
            "width, or use encoder 'mlp'.",
        )
    height, width, _ = picture_sides(shape, channels)
    if name == "auto":
        return "strided" if min(height, width) >= StridedEncoder.smallest else "conv"
    return name
