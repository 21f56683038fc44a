"""Random network distillation (arXiv 1810.12894): what cannot be predicted yet is new, and pays.

A predictor learns to give what a fixed, random target network gives of the same observation. It
only can where it was trained, so its error tells how new an observation is. For the observation
x_t+1 that step t led to:

    x'    = clip((x − mean) / std, −5, 5)     mean and std of each element, running
    e(x)  = mean over dim of (predictor(x') − target(x'))²
    S_t   = gamma · S_t−1 + e(x_t+1)          one stream, see `RND.update`
    paid  = coeff · e(x_t+1) / std of S       running

The paper gives this reward a value function of its own, with a gamma of its own and without episode
ends: so does `own_stream` (`algorithm/two_streams.py`). Otherwise it is added to the environment's,
and one value function, with the policy's gamma and with episode ends, sees the sum. gamma above is
that of the stream that it goes to. In the paper the predictor has two layers more than the target;
here both have the same form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rllib_conspec.episodes import Episode
from rllib_conspec.networks.devices import to_device
from rllib_conspec.networks.encoders import ENCODER_NAMES, build_encoder, orthogonal
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import Description, Setting
from rllib_conspec.reward_models.distinct import DistinctFrames
from rllib_conspec.reward_models.networked import NetworkModel

CLIP = 5.0  # standard deviations
# Least standard deviation of an element: one that never changed is 0, and ±5 when it first does.
LEAST = 1e-6
# Numbers in a piece of frames that is made floats of at a time.
PIECE = 2_000_000


@dataclass(frozen=True)
class RNDOptions(Options):
    """The defaults are the paper's: the preset `paper`."""

    coeff: float = option(
        0.5, "scale of the reward; the paper counts the environment's twice as much", min=0.0
    )
    encoder: str = option(
        "auto", "of predictor and target: as for the policy", choices=ENCODER_NAMES
    )
    dim: int = option(512, "width of encoder and output of predictor and target", min=1)
    lr: float = option(1e-4, "learning rate of the predictor", above=0.0)
    share: float = option(
        0.25,
        "share of the frames, drawn at random, that the predictor learns from. With fewer it takes "
        "longer to get used to what is new",
        above=0.0,
        max=1.0,
    )
    minibatch: int = option(256, "frames per gradient step", min=1)
    own_stream: bool = option(
        False,
        "a second value, of this reward alone, which episodes do not end, as in the paper. For "
        "WholeEpisodePPO and ConSpec",
    )
    gamma: float = option(0.99, "of that value", min=0.0, max=1.0)


class Moments:
    """Running mean and variance, element by element, of all that was ever added."""

    def __init__(self, shape: Sequence[int] = ()) -> None:
        self.count = 0
        self.mean, self.squares = np.zeros(shape), np.zeros(shape)

    def add(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Take in values [N, *shape], each as often as its count [N] says."""
        values, count = values.astype(np.float64), int(counts.sum())
        mean = np.tensordot(counts, values, axes=1) / count
        squares = np.tensordot(counts, (values - mean) ** 2, axes=1)
        total, shift = self.count + count, mean - self.mean
        self.mean += shift * (count / total)
        self.squares += squares + shift**2 * (self.count * count / total)
        self.count = total

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.squares / max(1, self.count))

    def get_state(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean.copy(), "squares": self.squares.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]
        self.mean, self.squares = np.array(state["mean"]), np.array(state["squares"])


class Networks(nn.Module):
    """Predictor, target, and what observations are normalised by."""

    def __init__(self, options: RNDOptions, setting: Setting) -> None:
        super().__init__()
        self.predictor = _network(options, setting)
        self.target = _network(options, setting).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(setting.shape))
        self.register_buffer("std", torch.ones(setting.shape))

    def forward(self, frames: np.ndarray) -> Tensor:
        """Raw observations [N, *shape] → e [N]."""
        raw = to_device(frames, self.mean.device)
        x = ((raw.to(self.mean.dtype) - self.mean) / self.std).clamp(-CLIP, CLIP)
        return (self.predictor(x) - self.target(x)).square().mean(dim=-1)

    @torch.no_grad()
    def errors(self, frames: np.ndarray) -> np.ndarray:
        """The same without a graph, for any number of frames: float64 [N]."""
        return torch.cat([self(some) for some in _pieces(frames)]).cpu().double().numpy()


def _network(options: RNDOptions, setting: Setting) -> nn.Module:
    encoder = build_encoder(
        options.encoder,
        setting.shape,
        options.dim,
        observation_range=1.0,  # they are normalised
        channels=setting.channels,
    )
    return nn.Sequential(encoder, orthogonal(nn.Linear(options.dim, options.dim)))


class RND(NetworkModel):
    """Pays for observations that are new."""

    Options = RNDOptions
    presets = {"few_successes": {"dim": 64, "lr": 1e-3, "share": 1.0}}
    metrics_shown = ("loss", "bonus")

    def __init__(self, options: RNDOptions, setting: Setting) -> None:
        super().__init__(options, setting)
        self._frames = Moments(setting.shape)
        self._sums = Moments()
        self._sum = 0.0  # S after the last step of the last episode
        self._errors: list[float] = []  # means of the first and of the last batch
        self._scale = 0.0  # paid per unit of error; on a worker, of the snapshot

    def build(self) -> Networks:
        return Networks(self.options, self.setting)

    # --- on every learner ---------------------------------------------------------------------

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        """Statistics first, then the predictor.

        S runs through the episodes in the order in which they come and is carried on from the end
        of each to the beginning of the next, also from one update to the next: the paper's stream
        without episode ends, but one for all environments. It takes the errors that the predictor
        makes before it learns from these frames.
        """
        if not episodes:
            return {}
        frames, place = _distinct([episode for _, episode in episodes])
        self._observe(frames, np.bincount(place))
        errors = self.networks.errors(frames)[place]
        self._follow(errors)
        self._errors = [*self._errors[:1], float(errors.mean())]
        return {"loss": self._train(frames, place), "bonus": self._scale * self._errors[-1]}

    def _observe(self, frames: np.ndarray, counts: np.ndarray) -> None:
        first = 0
        for some in _pieces(frames):
            self._frames.add(some, counts[first : first + len(some)])
            first += len(some)
        std = np.maximum(self._frames.std, LEAST)
        self.networks.mean.copy_(torch.from_numpy(self._frames.mean))
        self.networks.std.copy_(torch.from_numpy(std))

    def _follow(self, errors: np.ndarray) -> None:
        """Carry S on through the errors [N] of steps that follow each other."""
        own = self.own_stream(self.options)
        gamma = self.setting.gamma if own is None else own
        sums = list(accumulate(errors.tolist(), lambda s, e: gamma * s + e, initial=self._sum))[1:]
        self._sum = sums[-1]
        self._sums.add(np.array(sums), np.ones(len(sums)))
        std = float(self._sums.std)
        self._scale = self.options.coeff / std if std > 0 else 0.0

    def _train(self, frames: np.ndarray, place: np.ndarray) -> float:
        """One pass over the drawn share of the steps; the mean loss of its gradient steps."""
        count = max(1, round(self.options.share * len(place)))
        drawn = self._rng.permutation(place)[:count]
        losses = []
        for some in np.array_split(drawn, math.ceil(count / self.options.minibatch)):
            # Equal frames have equal errors: each is encoded once and counts as often as it came.
            which, counts = np.unique(some, return_counts=True)
            weights = torch.from_numpy(counts / len(some)).to(self.networks.mean)
            loss = (self.networks(frames[which]) * weights).sum()
            losses.append(self.step(loss))
        return float(np.mean(losses))

    def snapshot(self) -> dict[str, Any]:
        return {"networks": self.weights, "scale": self._scale}

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {
            "scale": self._scale,
            "frames": self._frames.get_state(),
            "sums": self._sums.get_state(),
            "sum": self._sum,
            "errors": list(self._errors),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._scale = state["scale"]
        self._frames.set_state(state["frames"])
        self._sums.set_state(state["sums"])
        self._sum, self._errors = state["sum"], list(state["errors"])

    # --- on every rollout worker --------------------------------------------------------------

    def load(self, snapshot: dict[str, Any]) -> None:
        self.load_weights(snapshot["networks"])
        self._scale = snapshot["scale"]

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """float32 [T] per episode; nothing before the first snapshot, when all would be new."""
        if not episodes or not self._scale:
            return [np.zeros(len(e), dtype=np.float32) for e in episodes]
        frames, place = _distinct(episodes)
        paid = (self._scale * self.networks.errors(frames)).astype(np.float32)[place]
        return np.split(paid, np.cumsum([len(e) for e in episodes])[:-1])

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def describe(cls, state: dict[str, Any]) -> Description:
        if not state["errors"]:
            return Description(("no frame seen yet",))
        first, last = state["errors"][0], state["errors"][-1]
        return Description(
            (
                f"{state['frames']['count']:,} frames seen, whose mean prediction error went from "
                f"{first:.3g} in the first batch to {last:.3g} in the last",
                f"a step of the last batch is paid {state['scale'] * last:.3g} on average",
            )
        )

    @classmethod
    def sizes(cls, options: RNDOptions) -> dict[str, Any]:
        return {name: getattr(options, name) for name in ("encoder", "dim", "own_stream")}

    @classmethod
    def own_stream(cls, options: RNDOptions) -> float | None:
        return options.gamma if options.own_stream else None


def _distinct(episodes: Sequence[Episode]) -> tuple[np.ndarray, np.ndarray]:
    """The different frames [N, *shape] of these episodes, and where those of all their steps, one
    episode after the other, stand among them.
    """
    distinct = DistinctFrames.of(episodes)
    return distinct.frames, np.concatenate([distinct.index[id(e)] for e in episodes])


def _pieces(frames: np.ndarray) -> list[np.ndarray]:
    """The frames, a bounded number at a time: as floats they are many times as large."""
    length = max(1, PIECE // math.prod(frames.shape[1:]))
    return [frames[i : i + length] for i in range(0, len(frames), length)]
