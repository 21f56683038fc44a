"""Optuna's search as Tune runs it, for results that may lack the metric."""

from __future__ import annotations

import math
from typing import Any

import optuna
from ray.tune.search.optuna import OptunaSearch

from rllib_conspec.cli.checks.sweep import Optuna


def make(options: Optuna) -> OptunaSearch:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=options.seed, n_startup_trials=options.startup_trials)
    return Measured(sampler=sampler)


class Measured(OptunaSearch):
    """Before an episode has ended there is nothing to tell; Tune's own raises a KeyError then."""

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        if self._measured(result):
            super().on_trial_result(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        # Without a value the trial counts as one that nothing can be learned from.
        known = result if result and self._measured(result) else None
        super().on_trial_complete(trial_id, known, error)

    def _measured(self, result: dict[str, Any]) -> bool:
        value = result.get(self.metric)
        return value is not None and not math.isnan(value)
