"""RUDDER (arXiv 1806.07857): the return is predicted at every step, and each step gets what it
changed in the prediction.

An LSTM reads the steps of an episode, x_t = (features of the observation that step t led to, action
a_t), and says after each what the return R will be:

    c_t   = c_t−1 + σ(W c_t−1 + b) · tanh(V x_t + d)     no forget gate, no output gate
    ĝ_t   = u · c_t + v
    loss  = (ĝ_T−1 − R)² + continuous · mean over t of (ĝ_t − R)²
    r'_t  = ĝ_t − ĝ_t−1 + (R − ĝ_T−1) / T                ĝ_−1 = 0

The cell's input comes from the step alone and its gate from the memory alone: an observation can
neither erase what was seen before nor hide itself. What the prediction misses at the end is spread
evenly, so that the return stays what it was: Σ r' = R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.options import option
from rllib_conspec.reward_models.attribution import Attribution
from rllib_conspec.reward_models.base import Setting, milestone
from rllib_conspec.reward_models.steps import StepEncoder, StepOptions, Steps, mask_of

EPISODES = 200  # of equal returns, before a word is said


@dataclass(frozen=True)
class RudderOptions(StepOptions):
    inputs: str = option(
        "state",
        "what the LSTM reads of an observation: its features, or their change since the step "
        "before (the first step's features as they are)",
        choices=("state", "change"),
    )
    dim: int = option(64, "memory cells of the LSTM", min=1)
    continuous: float = option(
        0.5, "weight of the predictions before the last step in the loss", min=0.0
    )
    lr: float = option(1e-3, "learning rate of LSTM and encoder", above=0.0)
    lessons: int = option(
        64, "episodes that it learns from: those with the largest losses of all that came", min=2
    )
    batch: int = option(8, "lessons per gradient step, drawn in proportion to their losses", min=1)
    steps: int = option(16, "gradient steps per iteration, at most", min=1)
    target: float = option(
        0.25,
        "error to learn down to in an iteration: the mean square error of the last prediction over "
        "the variance of the lessons' returns. It pays from when this was first reached with all "
        "lessons that it may keep",
        above=0.0,
    )


class Cell(nn.Module):
    """The LSTM: [K, T, inputs] → cells c [K, T, dim]."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.input, self.gate = nn.Linear(inputs, dim), nn.Linear(dim, dim)
        if not self.gate.weight.is_meta:
            nn.init.normal_(self.gate.weight, std=0.1)
            # Almost closed: at first, a cell takes in little of a long episode.
            nn.init.constant_(self.gate.bias, -3.0)

    def forward(self, x: Tensor) -> Tensor:
        offered = torch.tanh(self.input(x))
        c = offered.new_zeros(offered[:, 0].shape)
        cells = []
        for z in offered.unbind(1):
            c = c + torch.sigmoid(self.gate(c)) * z
            cells.append(c)
        return torch.stack(cells, dim=1)


class Networks(nn.Module):
    """ĝ of every step."""

    def __init__(self, options: RudderOptions, setting: Setting) -> None:
        super().__init__()
        self.change = options.inputs == "change"
        self.steps = StepEncoder(options, setting)
        self.cell = Cell(self.steps.width, options.dim)
        self.head = nn.Linear(options.dim, 1)

    def forward(self, steps: Steps) -> Tensor:
        """[K, T]; on padding, whatever comes out."""
        x = self.steps(steps)
        if self.change:
            z, actions = x.split([self.steps.dim, x.shape[-1] - self.steps.dim], dim=-1)
            z = torch.cat([z[:, :1], z[:, 1:] - z[:, :-1]], dim=1)
            x = torch.cat([z, actions], dim=-1)
        return self.head(self.cell(x)).squeeze(-1)


def last_of(predictions: Tensor, mask: Tensor) -> Tensor:
    """The prediction [K] at every episode's last step."""
    return predictions.gather(1, mask.sum(dim=1, keepdim=True) - 1)[:, 0]


def losses(predictions: Tensor, mask: Tensor, returns: Tensor, continuous: float) -> Tensor:
    """The loss [K] of every episode."""
    errors = (predictions - returns[:, None]).square() * mask
    along = errors.sum(dim=1) / mask.sum(dim=1)
    return (last_of(predictions, mask) - returns).square() + continuous * along


def redistribute(predictions: Tensor, mask: Tensor, returns: Tensor) -> Tensor:
    """r' [K, T], 0 on padding."""
    before = torch.cat([torch.zeros_like(predictions[:, :1]), predictions[:, :-1]], dim=1)
    missed = (returns - last_of(predictions, mask)) / mask.sum(dim=1)
    return (predictions - before + missed[:, None]) * mask


@dataclass(frozen=True, eq=False)
class Lesson:
    """An episode to learn from, as it was predicted when it was last looked at."""

    episode: PackedEpisode
    total: float  # its return
    loss: float
    error: float  # of the last prediction, squared


class Rudder(Attribution):
    """Redistributes an episode's return to the steps at which it became predictable."""

    Options = RudderOptions
    presets = {"few_successes": {"encoder_dim": 128, "lr": 2e-3}}
    metrics_shown = ("error",)
    replaces_reward = True
    EMPTY = "nothing is redistributed yet: returns are not predicted well enough"

    def __init__(self, options: RudderOptions, setting: Setting) -> None:
        super().__init__(options, setting)
        self._lessons: list[Lesson] = []
        self._seen = 0  # episodes

    def build(self) -> Networks:
        return Networks(self.options, self.setting)

    def attribute(self, steps: Steps, rewards: Tensor) -> Tensor:
        predictions = self.networks(steps)
        return redistribute(predictions, mask_of(steps, predictions), rewards.sum(dim=1))

    # --- on every learner ---------------------------------------------------------------------

    @property
    def error(self) -> float:
        """Of all lessons, relative to the variance of their returns; NaN if these are equal."""
        variance = np.var([lesson.total for lesson in self._lessons] or [0.0])
        if variance == 0:
            return float("nan")
        return float(np.mean([lesson.error for lesson in self._lessons]) / variance)

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        """New episodes become lessons where they are predicted worse than old ones; then gradient
        steps, as many as are needed.
        """
        new = [episode for _, episode in episodes]
        if new:
            self.take_in(new)
            self._add(new)
        taken, loss = 0, float("nan")
        # NaN is not above the target: with equal returns there is nothing to learn.
        while self.error > self.options.target and taken < self.options.steps:
            loss = self._learn()
            taken += 1
        # A few lessons are soon known by heart.
        full = len(self._lessons) == self.options.lessons
        self.paying = self.paying or (full and self.error <= self.options.target)
        metrics = {"lessons": len(self._lessons), "steps": taken, "error": self.error, "loss": loss}
        return {name: value for name, value in metrics.items() if value == value}

    def _add(self, episodes: Sequence[Episode]) -> None:
        self._seen += len(episodes)
        totals = [self.total(e) for e in episodes]
        with torch.no_grad():
            own, errors = self._losses(episodes, totals)
        # Packed only if kept. A sort is stable: of equal losses, the older lessons stay.
        offered = [
            Lesson(e, total, loss, error)
            for e, total, loss, error in zip(
                episodes, totals, own.tolist(), errors.tolist(), strict=True
            )
        ]
        kept = sorted([*self._lessons, *offered], key=lambda lesson: -lesson.loss)
        self._lessons = [
            lesson
            if isinstance(lesson.episode, PackedEpisode)
            else replace(lesson, episode=lesson.episode.packed())
            for lesson in kept[: self.options.lessons]
        ]

    def _losses(self, episodes: Sequence[Any], totals: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Loss and squared error of the last prediction, [K] each."""
        steps = self.steps(episodes)
        predictions = self.networks(steps)
        mask = mask_of(steps, predictions)
        returns = torch.tensor(totals, dtype=torch.float64).to(predictions)
        own = losses(predictions, mask, returns, self.options.continuous)
        return own, (last_of(predictions, mask) - returns).square().detach()

    def _learn(self) -> float:
        """One gradient step; the drawn lessons' losses are known anew."""
        chances = np.array([lesson.loss for lesson in self._lessons])
        count = min(self.options.batch, int((chances > 0).sum()))
        drawn = self._rng.choice(len(chances), count, replace=False, p=chances / chances.sum())
        some = [self._lessons[i] for i in drawn]
        own, errors = self._losses([s.episode for s in some], [s.total for s in some])
        loss = self.step(own.mean())
        for i, new_loss, error in zip(drawn, own.tolist(), errors.tolist(), strict=True):
            self._lessons[i] = replace(self._lessons[i], loss=new_loss, error=error)
        return loss

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {
            "lessons": [vars(lesson).copy() for lesson in self._lessons],
            "seen": self._seen,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._lessons = [Lesson(**own) for own in state["lessons"]]
        self._seen = state["seen"]

    def hints(self) -> list[str]:
        totals = {lesson.total for lesson in self._lessons}
        if len(totals) == 1 and self._seen >= EPISODES:
            count = milestone(self._seen, EPISODES)
            return [
                f"all of {count} episodes had the return {totals.pop():g}, so there is "
                "nothing to tell steps apart by: it waits for another one. A task that is easier "
                "at first, or a larger entropy_coeff, would help."
            ]
        return []

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def summary(cls, state: dict[str, Any]) -> str:
        totals = [lesson["total"] for lesson in state["lessons"]]
        error = np.sqrt(np.mean([lesson["error"] for lesson in state["lessons"]]))
        return (
            f"{len(totals)} lessons with returns from {min(totals):g} to {max(totals):g}, "
            f"predicted at their ends with an error of {error:.2g}"
        )

    @classmethod
    def sizes(cls, options: RudderOptions) -> dict[str, Any]:
        return {"encoder": options.encoder, "encoder_dim": options.encoder_dim, "dim": options.dim}
