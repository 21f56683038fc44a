"""Temporal value transport (arXiv 1810.06721): what is recalled is paid by what it is good for.

A policy with RMA says at every step how loudly each of its heads reads (β) and what it reads (which
steps, with which weights w), and which value V it expects. Where a head reads loudly, the steps
that it reads are paid a part of the value there:

    for each run of steps with β > threshold, t2 the loudest of them:
        r[t1] += alpha · w_t2[t1] · V_t2      for every t1 read with t2 − t1 > 1 / (1 − gamma)

Nearer steps are what discounting reaches by itself. Heads add up. Nothing is learned here: all
comes from the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import Description, RewardModel

READS = ("read_strengths", "read_weights", "read_addresses", "values")


@dataclass(frozen=True)
class TVTOptions(Options):
    alpha: float = option(0.9, "share of the value that goes to what was read", min=0.0)
    threshold: float = option(2.0, "read strength above which value is transported", min=0.0)


class TVT(RewardModel):
    """Pays for steps that a policy with RMA recalls long after, by the value at that time."""

    Options = TVTOptions
    metrics_shown = ("splices", "paid")

    def __init__(self, options: TVTOptions, setting: Any) -> None:
        super().__init__(options, setting)
        self._last: dict[str, float] = {}

    def check(self) -> None:
        if missing := [name for name in READS if name not in self.setting.outputs]:
            raise OptionError(
                "",  # none of its own
                f"reads {missing[0]}, which the policy's core does not give: set "
                "model_config.core to rma.",
            )

    def transport(self, episode: Episode) -> tuple[np.ndarray, int]:
        """What each step is paid (float64 [T]), and how many peaks there were."""
        strengths, weights, addresses, values = (episode.outputs[name] for name in READS)
        paid, o = np.zeros(len(episode)), self.options
        steps, heads = peaks(strengths, o.threshold)
        worth = o.alpha * weights[steps, heads].astype(np.float64) * values[steps, None]
        far = steps[:, None] - addresses[steps, heads]
        beyond = far * (1 - self.setting.gamma) > 1
        np.add.at(paid, addresses[steps, heads][beyond], worth[beyond])
        return paid, len(steps)

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        found = [self.transport(episode) for _, episode in episodes]
        if found:
            self._last = {
                "splices": float(np.mean([count for _, count in found])),
                "paid": float(np.mean([paid.sum() for paid, _ in found])),
            }
        return dict(self._last)

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        return [self.transport(episode)[0].astype(np.float32) for episode in episodes]

    def snapshot(self) -> None:
        """Workers have all that they need: what the policy gave."""

    def load(self, snapshot: None) -> None:
        """See `snapshot`."""

    def get_state(self) -> dict[str, Any]:
        return dict(self._last)

    def set_state(self, state: dict[str, Any]) -> None:
        self._last = dict(state)

    @classmethod
    def describe(cls, state: dict[str, Any]) -> Description:
        if not state:
            return Description(("no episode seen yet",))
        return Description(
            (
                f"in the last batch, {state['splices']:.1f} peaks of reading an episode, by which "
                f"{state['paid']:.3g} of value went to earlier steps",
            )
        )


def peaks(strengths: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Strengths [T, H] → step and head of the loudest in every run of steps above the threshold."""
    loud = strengths > threshold
    before = np.zeros_like(loud)
    before[1:] = loud[:-1]
    # The number of the run that each step is in, counted through all heads.
    runs = (loud & ~before).cumsum(axis=0)
    found: list[tuple[int, int]] = []
    for head in range(strengths.shape[1]):
        for run in range(1, int(runs[-1, head]) + 1 if len(runs) else 1):
            inside = np.flatnonzero(loud[:, head] & (runs[:, head] == run))
            found.append((int(inside[strengths[inside, head].argmax()]), head))
    steps, heads = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return steps, heads
