"""The parts of an iteration that were made faster, each against what it replaces, in one run.

- sampling: 16 episodes of the 2-key task played on arrays, against RLlib's connector loop
- gru: forward and backward of 4 episodes of 126 steps, against `torch.nn.GRU`
- encoder: 3×3 convolution of 2000 frames of 5×5, as one product, against `torch.nn.Conv2d`

Takes about 1 minute. Expect every ratio above 1.
"""

from __future__ import annotations

import time

from runs import build, experiment, start_ray  # sets the number of threads: before torch

# isort: split
import torch
from ray.rllib.callbacks.callbacks import RLlibCallback
from torch import nn

from rllib_conspec.networks.cores.gru import GRU
from rllib_conspec.networks.encoders import ConvEncoder


class Watching(RLlibCallback):
    """Does nothing, but has to be called: so RLlib's own loop plays."""


def best(function, repeat: int = 8) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def sampling() -> float:
    seconds = {}
    for name, extra in (("arrays", {}), ("RLlib", {"callbacks_class": Watching})):
        algorithm = build(experiment("keys2") | extra, conspec=False)
        seconds[name] = best(algorithm.env_runner.sample, repeat=4)
        print(f"  sampling, {name}: {seconds[name]:.3f} s for 16 episodes", flush=True)
        algorithm.stop()
    return seconds["RLlib"] / seconds["arrays"]


def gru(units: int) -> float:
    ours = GRU(units, units)
    x, h = torch.randn(4, 126, units), torch.zeros(4, units)

    def fast() -> None:
        ours(x, h)[0].sum().backward()

    def plain() -> None:
        nn.GRU.forward(ours, x, h.unsqueeze(0))[0].sum().backward()

    a, b = best(fast), best(plain)
    print(f"  gru {units}: {1e3 * a:.1f} ms, torch.nn.GRU {1e3 * b:.1f} ms", flush=True)
    return b / a


def encoder() -> float:
    frames = torch.randint(0, 256, (2000, 5, 5, 3), dtype=torch.uint8)
    ours = ConvEncoder((5, 5, 3), 128)
    plain = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(800, 128), nn.ReLU()
    )
    with torch.no_grad():
        a = best(lambda: ours(frames))
        b = best(lambda: plain(frames.permute(0, 3, 1, 2).float() / 255))
    print(f"  encoder: {1e3 * a:.1f} ms, torch.nn.Conv2d {1e3 * b:.1f} ms", flush=True)
    return b / a


def main() -> None:
    start_ray()
    figures = {
        "encoder_speedup": encoder(),
        "gru_128_speedup": gru(128),
        "gru_512_speedup": gru(512),
        "sampling_speedup": sampling(),
    }
    for name, ratio in figures.items():
        print(f"{name}: {ratio:.2f}")


if __name__ == "__main__":
    main()
