"""Synthetic returns (arXiv 2102.12425): each state says what it will contribute to rewards far off.

With s_t the observation that step t led to, a reward is predicted from all states before it:

    r̂_t   = g(s_t) · Σ_{k<t} c(s_k)      + b(s_t), with `bias`
    loss  = mean over steps of ½ (r_t − r̂_t)²
    paid  = alpha · c(s_t) + beta · r_t   instead of r_t

c is a state's contribution; the gate g says at which states contributions are paid out: a sigmoid
in the paper, or a softmax over the steps of an episode, which the paper of ConSpec found better.
States are summed up as they were seen: the encoder learns from g and b alone, c by its own layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rllib_conspec.episodes import Episode
from rllib_conspec.networks.encoders import orthogonal
from rllib_conspec.options import option
from rllib_conspec.reward_models.attribution import Attribution
from rllib_conspec.reward_models.base import Setting, milestone
from rllib_conspec.reward_models.steps import StepEncoder, StepOptions, Steps, mask_of, padded

EPISODES = 200  # without any reward, before a word is said


@dataclass(frozen=True)
class SynthRsOptions(StepOptions):
    gate: str = option(
        "softmax",
        "g: a sigmoid of each state (the paper), or a softmax over the steps of an episode",
        choices=("softmax", "sigmoid"),
    )
    bias: bool = option(
        False, "predict rewards by b(s_t), too: what the present state explains, no past one has to"
    )
    dim: int = option(1010, "width of both layers of c, g and b (100 for pixels)", min=1)
    alpha: float = option(0.01, "what a contribution is paid", min=0.0)
    beta: float = option(1.0, "what the environment's reward is multiplied by", min=0.0)
    lr: float = option(2e-3, "learning rate of encoder, c, g and b", above=0.0)
    batch: int = option(4, "episodes per gradient step", min=1)
    epochs: int = option(4, "passes over the episodes of an iteration", min=1)


class Networks(nn.Module):
    """Contributions and predicted rewards of steps."""

    def __init__(self, options: SynthRsOptions, setting: Setting) -> None:
        super().__init__()
        self.gate = options.gate
        self.steps = StepEncoder(options, setting)
        sizes = options.encoder_dim, options.dim
        self.c, self.g = _layers(*sizes), _layers(*sizes)
        self.b = _layers(*sizes) if options.bias else None
        # Nothing contributes before anything was learned: noise would be paid, too.
        nn.init.zeros_(self.c[-1].weight)

    def contributions(self, steps: Steps) -> Tensor:
        """c [K, T]"""
        return self.c(self.steps.observations(steps).detach()).squeeze(-1)

    def forward(self, steps: Steps) -> Tensor:
        """r̂ [K, T]; on padding, whatever comes out."""
        z = self.steps.observations(steps)
        mask = mask_of(steps, z)
        c = self.c(z.detach()).squeeze(-1)
        g = gates(self.g(z).squeeze(-1), mask, self.gate)
        b = self.b(z).squeeze(-1) if self.b is not None else 0.0
        return g * sums_before(c) + b


def _layers(inputs: int, dim: int) -> nn.Sequential:
    return nn.Sequential(
        orthogonal(nn.Linear(inputs, dim)), nn.ReLU(), orthogonal(nn.Linear(dim, 1), gain=1.0)
    )


def gates(logits: Tensor, mask: Tensor, kind: str) -> Tensor:
    """g [K, T]; a softmax is over the real steps of each episode."""
    if kind == "sigmoid":
        return torch.sigmoid(logits)
    return logits.masked_fill(~mask, -math.inf).softmax(dim=1)


def sums_before(c: Tensor) -> Tensor:
    """Σ_{k<t} c_k [K, T]."""
    return torch.cat([torch.zeros_like(c[:, :1]), c.cumsum(dim=1)[:, :-1]], dim=1)


class SynthRs(Attribution):
    """Pays for states that predict rewards far off."""

    Options = SynthRsOptions
    presets = {
        "few_successes": {"encoder_dim": 128, "dim": 100},
        "control": {"encoder_dim": 64, "dim": 100},
        "atari": {"encoder_dim": 256, "dim": 100},
    }
    metrics_shown = ("loss", "contribution")
    EMPTY = "nothing contributes yet: no reward was seen"

    def __init__(self, options: SynthRsOptions, setting: Setting) -> None:
        super().__init__(options, setting)
        self._seen = 0  # episodes

    def build(self) -> Networks:
        return Networks(self.options, self.setting)

    def contribution(self, steps: Steps, rewards: Tensor) -> Tensor:
        return self.networks.contributions(steps)

    def attribute(self, steps: Steps, rewards: Tensor) -> Tensor:
        o = self.options
        return o.alpha * self.networks.contributions(steps) + o.beta * rewards

    # --- on every learner ---------------------------------------------------------------------

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        """Passes over these episodes, from the first reward on: before, all there is to learn is
        that nothing contributes.
        """
        new = [episode for _, episode in episodes]
        if not new:
            return {}
        self._seen += len(new)
        self.take_in(new)
        self.paying = self.paying or any(e.rewards.any() for e in new)
        if not self.paying:
            return {}
        losses = []
        for _ in range(self.options.epochs):
            order = self._rng.permutation(len(new))
            for some in np.array_split(order, math.ceil(len(new) / self.options.batch)):
                losses.append(self.step(self.loss([new[i] for i in some])))
        largest = [float(c.max()) for c in self._of_all(self.contribution, new)]
        return {"loss": float(np.mean(losses)), "contribution": float(np.mean(largest))}

    def loss(self, episodes: Sequence[Episode]) -> Tensor:
        steps = self.steps(episodes)
        predicted = self.networks(steps)
        rewards = padded([self.rewards(e) for e in episodes], steps, predicted)
        return 0.5 * (rewards - predicted).square()[mask_of(steps, predicted)].mean()

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"seen": self._seen}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._seen = state["seen"]

    def hints(self) -> list[str]:
        if self.paying or self._seen < EPISODES:
            return []
        count = milestone(self._seen, EPISODES)
        return [
            f"no reward in {count} episodes, so there is nothing that states could have "
            "contributed to. A task that is easier at first, or a larger entropy_coeff, would help."
        ]

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def summary(cls, state: dict[str, Any]) -> str:
        worth = np.concatenate(state["contributions"])
        return (
            f"{state['seen']:,} episodes seen; contributions in the best {len(state['best'])} lie "
            f"between {worth.min():.2g} and {worth.max():.2g}"
        )

    @classmethod
    def sizes(cls, options: SynthRsOptions) -> dict[str, Any]:
        return {name: getattr(options, name) for name in ("encoder", "encoder_dim", "dim", "bias")}
