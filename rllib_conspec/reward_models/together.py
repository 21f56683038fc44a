"""Several reward models as one: the union of what they choose, the sum of what they pay.

The RLlib glue always holds one of these, most often with a single model in it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_conspec.episodes import Episode, Summary
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models.base import RewardModel, Setting

FORMAT = 2  # of the state; 1 was ConSpec's alone
Labels = dict[str, Any]  # name of the model → its label


class Together:
    """The models of an experiment, by name (registered name or import path)."""

    def __init__(
        self, models: Mapping[str, Mapping[str, Any]], setting: Setting, preset: str | None = None
    ) -> None:
        self.models: dict[str, RewardModel] = {
            name: find_model(name)(options_of(name, values, preset), setting)
            for name, values in models.items()
        }
        sections = [model.name for model in self.models.values()]
        for name, model in self.models.items():
            if sections.count(model.name) > 1:
                raise OptionError(name, f"has the same name as another model: {model.name!r}.")
        replacing = [name for name, model in self.models.items() if model.replaces_reward]
        if len(replacing) > 1:
            raise OptionError(
                replacing[1],
                f"replaces the environment's reward, and so does {replacing[0]}: keep one of them.",
            )
        owning = [name for name, m in self.models.items() if m.own_stream(m.options) is not None]
        if len(owning) > 1:
            raise OptionError(
                owning[1],
                f"has a value stream of its own, and so does {owning[0]}: there is only one.",
            )
        self._owning = owning[0] if owning else None
        self.version = 0  # updates so far; on a worker, of the snapshot that pays

    def check(self) -> None:
        for name, model in self.models.items():
            try:
                model.check()
            except OptionError as error:
                raise error.within(name) from error

    @property
    def num_parameters(self) -> int:
        return sum(model.num_parameters for model in self.models.values())

    # --- on the driver ------------------------------------------------------------------------

    def choose(
        self, summaries: Sequence[Summary], rng: np.random.Generator
    ) -> list[tuple[int, Labels]]:
        """(position, labels) of the episodes that some model wants, in batch order."""
        chosen: dict[int, Labels] = {}
        for name, model in self.models.items():
            for i, label in model.choose(summaries, rng):
                chosen.setdefault(i, {})[name] = label
        return sorted(chosen.items())

    # --- on every learner ---------------------------------------------------------------------

    def update(self, episodes: Sequence[tuple[Labels, Episode]]) -> dict[str, Any]:
        """Every model learns from what it chose. Metrics by the models' names."""
        metrics = {
            model.name: model.update(
                [(labels[name], e) for labels, e in episodes if name in labels]
            )
            for name, model in self.models.items()
        }
        self.version += 1
        return metrics

    def hints(self) -> list[str]:
        return [f"{m.name}: {hint}" for m in self.models.values() for hint in m.hints()]

    def snapshot(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "models": {name: model.snapshot() for name, model in self.models.items()},
        }

    def get_state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": self.version,
            "models": {name: model.get_state() for name, model in self.models.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Models that the state does not have start from nothing."""
        for name, own in models_in(state).items():
            if name in self.models:
                self.models[name].set_state(own)
        self.version = state["version"]

    # --- on every rollout worker --------------------------------------------------------------

    def load(self, snapshot: dict[str, Any]) -> None:
        for name, own in snapshot["models"].items():
            self.models[name].load(own)
        self.version = snapshot["version"]

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """The sum of what the models pay for every step: float32 [T] per episode. Without what has
        a value stream of its own.
        """
        total = [np.zeros(len(e), dtype=np.float32) for e in episodes]
        for name, model in self.models.items():
            if name == self._owning:
                continue
            for sum_, paid in zip(total, model.reward(episodes), strict=True):
                sum_ += paid
        return total

    def own_reward(self, episodes: Sequence[Episode]) -> list[np.ndarray] | None:
        """What the model with a value stream of its own pays: float32 [T] per episode."""
        if self._owning is None:
            return None
        paid = self.models[self._owning].reward(episodes)
        return [np.asarray(own, dtype=np.float32) for own in paid]


def pay_alike(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    """Whether two snapshots hold the same, whatever their versions; a doubt counts as a no."""
    if a is None or b is None:
        return a is b
    return pickle.dumps(a["models"]) == pickle.dumps(b["models"])


def models_in(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The states of the models in a checkpoint's state, by name."""
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UserError("was made by an earlier version, whose checkpoints cannot be read.")
    return state["models"]
