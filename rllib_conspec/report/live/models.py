"""The reward models of a run, asked through the seam for what they show of their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_conspec.reward_models import find_model
from rllib_conspec.reward_models.base import RewardModel


class Models:
    """The classes that a result's configuration names. Finding them imports torch and the user's
    own modules, which takes seconds: do that in a thread.
    """

    def __init__(self) -> None:
        self._classes: dict[str, type[RewardModel] | None] = {}
        self.trouble = ""

    def find(self, row: Mapping[str, Any]) -> None:
        for name in _named(row):
            if name not in self._classes:
                self._classes[name] = self._found(name)

    def unknown(self, row: Mapping[str, Any]) -> bool:
        return any(name not in self._classes for name in _named(row))

    def _found(self, name: str) -> type[RewardModel] | None:
        try:
            return find_model(name)
        except Exception as error:  # also whatever a user's module raises
            self.trouble = " ".join(str(error).split())
            return None

    def cells(self, row: Mapping[str, Any]) -> dict[str, str]:
        """What the models show of this result, title → text, as the progress of `rllib train`."""
        cells: dict[str, str] = {}
        for name in _named(row):
            model = self._classes.get(name)
            metrics = row.get(model.name) if model else None
            if isinstance(metrics, Mapping):
                try:
                    cells |= model.cells(metrics)
                except Exception as error:  # of somebody's model
                    self.trouble = f"{model.name}: {type(error).__name__}: {error}"
        return cells

    def sections(self, row: Mapping[str, Any]) -> list[str]:
        """Where the result has their metrics."""
        found = [self._classes.get(name) for name in _named(row)]
        return [m.name for m in found if m and isinstance(row.get(m.name), Mapping)]


def _named(row: Mapping[str, Any]) -> list[str]:
    config = row.get("config")
    named = config.get("reward_models") if isinstance(config, Mapping) else None
    return [str(name) for name in named] if isinstance(named, Mapping) else []
