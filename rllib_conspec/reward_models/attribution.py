"""What models have in common that say how much of an episode's return each of its steps is worth.

Such a model gives rewards of its own in place of the environment's. What models pay is added to
the environment's reward, so it pays the difference, in the measure that the policy learns in
(`reward_scale`). Until it has something to say it pays nothing: the environment's rewards stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rllib_conspec.episodes import Episode, PackedEpisode, scaled
from rllib_conspec.networks.normalizing import normalizes, observe
from rllib_conspec.reward_models.base import Description, Moment, Row, Setting, Timeline
from rllib_conspec.reward_models.distinct import AnyEpisode
from rllib_conspec.reward_models.moments import different_first, likeliest, shares_near
from rllib_conspec.reward_models.networked import NetworkModel
from rllib_conspec.reward_models.steps import Steps, padded

SHOWN = 8  # episodes that are kept to be shown


class Attribution(NetworkModel):
    """A reward model that attributes reward to steps. Its options are `StepOptions`."""

    EMPTY: ClassVar[str] = "nothing is attributed yet"

    def __init__(self, options: Any, setting: Setting) -> None:
        super().__init__(options, setting)
        self.paying = False  # on a worker: whether the snapshot pays
        self._best: list[PackedEpisode] = []  # the newest with the highest return

    def attribute(self, steps: Steps, rewards: Tensor) -> Tensor:
        """What the policy is to get instead of the rewards [K, T]; padding does not matter."""
        raise NotImplementedError

    def contribution(self, steps: Steps, rewards: Tensor) -> Tensor:
        """What is shown as a step's worth [K, T]."""
        return self.attribute(steps, rewards)

    def steps(self, episodes: Sequence[AnyEpisode], drawn: Any = None) -> Steps:
        return Steps.of(episodes, self.setting.action_space, drawn)

    def rewards(self, episode: AnyEpisode) -> np.ndarray:
        """The environment's [T], as the policy learns from them."""
        return scaled(episode.rewards, self.setting.reward_scale)

    def total(self, episode: AnyEpisode) -> float:
        """The sum of these."""
        return float(self.rewards(episode).sum(dtype=np.float64))

    # --- on every learner ---------------------------------------------------------------------

    def take_in(self, episodes: Sequence[Episode]) -> None:
        """Look at new episodes before learning from them."""
        if normalizes(self.networks):
            seen = np.concatenate([e.frames for e in episodes])
            observe(self.networks, torch.from_numpy(seen))
        newest_first = [*reversed(episodes), *self._best]
        best = sorted(newest_first, key=self.total, reverse=True)[:SHOWN]
        self._best = [e if isinstance(e, PackedEpisode) else e.packed() for e in best]

    def snapshot(self) -> dict[str, Any]:
        # Nothing at all before it pays: what was played by an equal snapshot stays valid.
        return {"networks": self.weights if self.paying else None}

    def get_state(self) -> dict[str, Any]:
        shown = self._best if self.paying else []
        return super().get_state() | {
            "paying": self.paying,
            "best": list(self._best),
            "contributions": self._of_all(self.contribution, shown),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.paying, self._best = state["paying"], list(state["best"])

    # --- on every rollout worker --------------------------------------------------------------

    def load(self, snapshot: dict[str, Any]) -> None:
        self.paying = snapshot["networks"] is not None
        if self.paying:
            self.load_weights(snapshot["networks"])

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """float32 [T] per episode: what it attributes, less what the environment pays."""
        if not self.paying:
            return [np.zeros(len(e), dtype=np.float32) for e in episodes]
        worth = self._of_all(self.attribute, episodes)
        return [
            (new - self.rewards(e)).astype(np.float32)
            for new, e in zip(worth, episodes, strict=True)
        ]

    @torch.no_grad()
    def _of_all(self, function: Any, episodes: Sequence[AnyEpisode]) -> list[np.ndarray]:
        """What `function` gives for the steps of every episode: float64 [T] each."""
        if not episodes:
            return []
        steps = self.steps(episodes)
        like = next(self.networks.parameters())
        values = function(steps, padded([self.rewards(e) for e in episodes], steps, like))
        values = values.double().cpu().numpy()
        return [own[:length] for own, length in zip(values, steps.lengths, strict=True)]

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def summary(cls, state: dict[str, Any]) -> str:
        """How far it has come, in one line."""
        raise NotImplementedError

    @classmethod
    def describe(cls, state: dict[str, Any]) -> Description:
        if not state["paying"]:
            return Description((cls.EMPTY,))
        episodes = [packed.unpacked() for packed in state["best"]]
        worth = state["contributions"]
        most = _extremes("worth most", episodes, worth)
        least = _extremes("worth least", episodes, [-w for w in worth], sign=-1)
        lines = (cls.summary(state), *(_said(row) for row in (most, least)))
        best = (Timeline("the episode with the highest return", episodes[0], {"worth": worth[0]}),)
        return Description(lines, {f"{cls.name}_steps": (most, least)}, best)


def _extremes(
    title: str, episodes: Sequence[Episode], scores: Sequence[np.ndarray], sign: int = 1
) -> Row:
    """The highest step of every episode, the highest of all first."""
    found = [(e, int(s.argmax()), float(s.max())) for e, s in zip(episodes, scores, strict=True)]
    found.sort(key=lambda moment: -moment[2])
    return Row(title, different_first(Moment(e, t, sign * s) for e, t, s in found))


def _said(row: Row) -> str:
    steps = [moment.step for moment in row.moments]
    low, middle, high = np.percentile(steps, [25, 50, 75]).astype(int)
    events = shares_near([m.episode for m in row.moments], [[t] for t in steps])
    name = likeliest(events)
    what = f"{name} ({events[name]:.0%} of episodes), " if name else ""
    mean = np.mean([moment.score for moment in row.moments])
    return f"{row.title}: {what}step {middle} ({low}–{high}), {mean:.3g} on average"
