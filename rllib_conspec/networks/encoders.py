"""Encoders of single observations: `conv` (keys), `impala` and `strided` (pixels), `mlp` (vectors).

Each takes raw observations [N, *shape], uint8 pixels included, and returns features [N, dim].
Frames stay uint8 until here, so that memories, object store and network never carry floats of them.
ConSpec and the policy use the same classes with parameters of their own (the paper keeps them apart
to avoid interference).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def orthogonal(layer: nn.Linear | nn.Conv2d, gain: float = math.sqrt(2)) -> nn.Linear | nn.Conv2d:
    """Orthogonal weights and zero bias, the initialisation of the paper's PPO."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class PixelConv(nn.Conv2d):
    """A convolution of raw pictures: [N, height, width, channels] in 0..255, seen as 0..1.

    The weights are scaled instead of the pixels, which are a thousand times as many.
    """

    def forward(self, frames: Tensor) -> Tensor:
        x = frames.permute(0, 3, 1, 2).to(self.weight.dtype)
        return self._conv_forward(x, self.weight * (1 / 255), self.bias)


class ConvEncoder(nn.Module):
    """One 3×3 convolution of 32 channels and a linear layer (multi-key-to-door).

    The images are 5×5: a convolution kernel spends its time on set-up and layout. Cut into patches
    they are one matrix product, three times as fast on a CPU, and still uint8 while they are cut.
    """

    def __init__(self, shape: Sequence[int], dim: int) -> None:
        super().__init__()
        height, width, channels = shape
        self.patches = orthogonal(nn.Linear(9 * channels, 32))
        self.linear = orthogonal(nn.Linear(32 * height * width, dim))

    def forward(self, frames: Tensor) -> Tensor:
        padded = nn.functional.pad(frames, (0, 0, 1, 1, 1, 1))
        patches = padded.unfold(1, 3, 1).unfold(2, 3, 1).flatten(3).flatten(1, 2)
        x = patches.to(self.patches.weight.dtype) * (1 / 255)
        return self.linear(self.patches(x).relu_().flatten(1)).relu_()


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

    def __init__(self, shape: Sequence[int], dim: int) -> None:
        height, width, channels = shape
        layers: list[nn.Module] = []
        for out in (16, 32, 32):
            convolution = nn.Conv2d if layers else PixelConv
            layers += [
                convolution(channels, out, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(out),
                ResidualBlock(out),
            ]
            channels, height, width = out, (height + 1) // 2, (width + 1) // 2
        super().__init__(
            *layers,
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(channels * height * width, dim)),
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

    def __init__(self, shape: Sequence[int], dim: int) -> None:
        height, width, channels = shape
        if min(height, width) < self.smallest:
            raise ValueError(
                f"encoder 'strided' needs pictures of at least {self.smallest}×{self.smallest}, "
                f"not {height}×{width}; use encoder 'conv'."
            )
        height, width = (((side - 8) // 4 + 1 - 4) // 2 + 1 for side in (height, width))
        super().__init__(
            orthogonal(PixelConv(channels, 16, 8, stride=4)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(16, 32, 4, stride=2)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(32 * height * width, dim)),
            nn.ReLU(),
        )
        self.to(memory_format=torch.channels_last)


class MlpEncoder(nn.Sequential):
    """Two tanh layers (continuous control); observations of any shape are flattened."""

    def __init__(self, shape: Sequence[int], dim: int) -> None:
        super().__init__(
            nn.Flatten(),
            orthogonal(nn.Linear(math.prod(shape), dim)),
            nn.Tanh(),
            orthogonal(nn.Linear(dim, dim)),
            nn.Tanh(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        return super().forward(observations.to(self[1].weight.dtype))


ENCODERS = {
    "conv": ConvEncoder,
    "impala": ImpalaEncoder,
    "strided": StridedEncoder,
    "mlp": MlpEncoder,
}


def build_encoder(name: str, shape: Sequence[int], dim: int) -> nn.Module:
    """The encoder called `name` for observations of this shape, with `dim` features."""
    if name not in ENCODERS:
        raise ValueError(f"encoder must be one of {', '.join(ENCODERS)}, not {name!r}.")
    if name != "mlp" and len(shape) != 3:
        raise ValueError(
            f"encoder {name!r} needs observations of shape (height, width, channels), not "
            f"{tuple(shape)}; use encoder 'mlp'."
        )
    return ENCODERS[name](shape, dim)
