"""A trial that fails is saved before it is stopped: what it has learned is not lost with it.

Tune saves at regular intervals and at the end, but stops a trial at once when it raises. Its actor
still lives then, unless it was killed, and holds the state after the last whole iteration.
"""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayError

SAVE_SECONDS = 120.0
ITERATION = "training_iteration"


def saving_on_error(scheduler: Any) -> Any:
    """Make a Tune scheduler save a failed trial, if it has done more than its checkpoint has."""
    on_trial_error = scheduler.on_trial_error

    def save_first(controller: Any, trial: Any) -> None:
        if _unsaved(trial):
            _save(controller, trial)
        on_trial_error(controller, trial)

    scheduler.on_trial_error = save_first
    return scheduler


def _unsaved(trial: Any) -> bool:
    saved = trial.latest_checkpoint_result
    done = (trial.last_result or {}).get(ITERATION, 0)
    return done > (saved.metrics.get(ITERATION, 0) if saved else 0)


def _save(controller: Any, trial: Any) -> None:
    future = controller._schedule_trial_save(trial)
    if future is None:  # its actor is gone
        return
    try:
        saved = ray.get(future.future, timeout=SAVE_SECONDS)
    except RayError:  # killed, or too broken to save: the error that is reported is the first one
        trial.temporary_state.saving_to = None
        return
    controller._process_trial_save(trial, saved)
