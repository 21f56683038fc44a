"""Randomised return decomposition (arXiv 2111.13485): rewards of single steps that sum up to the
return, learned from a few steps of an episode at a time.

r̂(x) is a network of one step, x = (features of the observation that it led to, action). Of an
episode of T steps, K are drawn at random, all different; m and s² are mean and variance (over
K − 1) of r̂ on them:

    loss  = (m − R/T)²                       surrogate: at most r̂'s variance too large
    loss  = (m − R/T)² − (1 − K/T) · s²/K    unbiased: on average that of all T steps
    paid  = r̂(x_t)                           instead of r_t

Both are the paper's, divided by T²: an episode counts the same however long it is. The surrogate
favours rewards that are spread evenly, which the paper found to be an advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.networks.encoders import orthogonal
from rllib_conspec.options import option
from rllib_conspec.reward_models.attribution import Attribution
from rllib_conspec.reward_models.base import Setting, milestone
from rllib_conspec.reward_models.steps import StepEncoder, StepOptions, Steps, mask_of

EPISODES = 200  # of equal returns, before a word is said


@dataclass(frozen=True)
class RRDOptions(StepOptions):
    drawn: int = option(64, "K, steps drawn of an episode; all of one that has no more", min=2)
    form: str = option(
        "surrogate",
        "of the loss: the surrogate, which favours rewards that are spread evenly, or unbiased",
        choices=("surrogate", "unbiased"),
    )
    dim: int = option(256, "width of the hidden layer", min=1)
    lr: float = option(3e-4, "learning rate of reward and encoder", above=0.0)
    memory: int = option(256, "newest episodes that it learns from", min=2)
    batch: int = option(4, "episodes per gradient step", min=1)
    steps: int = option(16, "gradient steps per iteration", min=1)


class Networks(nn.Module):
    """r̂ of single steps."""

    def __init__(self, options: RRDOptions, setting: Setting) -> None:
        super().__init__()
        self.steps = StepEncoder(options, setting)
        self.hidden = orthogonal(nn.Linear(self.steps.width, options.dim))
        self.head = nn.Linear(options.dim, 1)
        # No step is worth anything before anything was learned: noise would be paid, too.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, steps: Steps) -> Tensor:
        """[K, T]"""
        return self.head(self.hidden(self.steps(steps)).relu()).squeeze(-1)


def losses(rewards: Tensor, mask: Tensor, means: Tensor, lengths: Tensor, form: str) -> Tensor:
    """The loss [B] of every episode: r̂ [B, K] of the drawn steps, R/T [B], and T [B]."""
    drawn = mask.sum(dim=1)
    mean = (rewards * mask).sum(dim=1) / drawn
    loss = (mean - means).square()
    if form == "surrogate":
        return loss
    squares = ((rewards - mean[:, None]).square() * mask).sum(dim=1)
    # Of a single step there is no variance, and nothing to correct: it is the whole episode.
    variance = squares / (drawn - 1).clamp_min(1)
    return loss - (1 - drawn / lengths) * variance / drawn


class RRD(Attribution):
    """Pays learned rewards that sum up to the return, in place of the environment's."""

    Options = RRDOptions
    presets = {"few_successes": {"encoder_dim": 128, "dim": 128, "lr": 1e-3}}
    metrics_shown = ("loss",)
    replaces_reward = True
    EMPTY = "no reward is learned yet: all returns are equal"

    def __init__(self, options: RRDOptions, setting: Setting) -> None:
        super().__init__(options, setting)
        self._memory: list[PackedEpisode] = []
        self._seen = 0  # episodes

    def build(self) -> Networks:
        return Networks(self.options, self.setting)

    def attribute(self, steps: Steps, rewards: Tensor) -> Tensor:
        return self.networks(steps)

    # --- on every learner ---------------------------------------------------------------------

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        """Gradient steps on remembered episodes, from when their returns first differ."""
        new = [episode for _, episode in episodes]
        if new:
            self.take_in(new)
            self._seen += len(new)
            self._memory = [*self._memory, *(e.packed() for e in new)][-self.options.memory :]
        self.paying = self.paying or len({self.total(e) for e in self._memory}) > 1
        if not self.paying:
            return {}
        found = [self.step(self._loss()) for _ in range(self.options.steps)]
        return {"loss": float(np.mean(found))}

    def _loss(self) -> Tensor:
        """Of some episodes, by some of their steps."""
        count = min(self.options.batch, len(self._memory))
        some = [self._memory[i] for i in self._rng.choice(len(self._memory), count, replace=False)]
        drawn = [np.sort(self._rng.permutation(len(e))[: self.options.drawn]) for e in some]
        steps = self.steps(some, drawn)
        rewards = self.networks(steps)
        means = torch.tensor([self.total(e) / len(e) for e in some], dtype=torch.float64).to(
            rewards
        )
        lengths = torch.tensor([len(e) for e in some]).to(rewards)
        mask = mask_of(steps, rewards)
        return losses(rewards, mask, means, lengths, self.options.form).mean()

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"memory": list(self._memory), "seen": self._seen}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._memory, self._seen = list(state["memory"]), state["seen"]

    def hints(self) -> list[str]:
        if self.paying or self._seen < EPISODES:
            return []
        count = milestone(self._seen, EPISODES)
        return [
            f"all of {count} episodes had the return {self.total(self._memory[0]):g}, so "
            "there is nothing to tell steps apart by. A task that is easier at first, or a larger "
            "entropy_coeff, would help."
        ]

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def summary(cls, state: dict[str, Any]) -> str:
        sums = [worth.sum() for worth in state["contributions"]]
        return (
            f"{state['seen']:,} episodes seen; learned rewards of the best {len(sums)} sum up to "
            f"{np.mean(sums):.3g} on average"
        )

    @classmethod
    def sizes(cls, options: RRDOptions) -> dict[str, Any]:
        return {"encoder": options.encoder, "encoder_dim": options.encoder_dim, "dim": options.dim}
