"""A sweep that was killed goes on as if it had not been.

Tune saves its trials and where their values come from, but nothing of what its scheduler has
compared so far, and it saves every few seconds: a trial that ended just before would run again.
Here the scheduler's memory is saved with the rest, and the rest whenever a trial ends.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import cloudpickle
from ray import ObjectRef, tune
from ray.train._internal.session import _FutureTrainingResult
from ray.tune.experiment import Trial

GONE = ""


class Remembering(tune.Callback):
    """Saves and restores a Tune scheduler with its trials."""

    def __init__(self, scheduler: Any):
        self._scheduler = scheduler
        self._stored: bytes | None = None  # from before, for the trials that are about to come
        self._controller: Any = None
        self._ended = False
        on_trial_add = scheduler.on_trial_add

        def meet(controller: Any, trial: Trial) -> None:
            self._controller = controller
            on_trial_add(controller, trial)

        scheduler.on_trial_add = meet

    def get_state(self) -> dict[str, Any]:
        if self._stored is not None:  # not in use yet
            return {"scheduler": self._stored, "kind": type(self._scheduler).__name__}
        # What it has come to know stands in collections; the rest is how it was set.
        found = vars(self._scheduler).items()
        memory = {n: value for n, value in found if isinstance(value, (dict, list, set))}
        return {"scheduler": dumped(memory), "kind": type(self._scheduler).__name__}

    def set_state(self, state: dict[str, Any]) -> None:
        if state["kind"] == type(self._scheduler).__name__:  # the file may name another one now
            self._stored = state["scheduler"]

    def on_step_begin(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        if self._stored is None:
            return
        memory = loaded(self._stored, trials)
        self._stored = None
        for name, value in memory.items():
            # Trials that have ended and now go on are known from having been added just now.
            if isinstance(value, dict):
                fresh = getattr(self._scheduler, name)
                for trial in fresh.keys() - value.keys():
                    value[trial] = fresh[trial]
            setattr(self._scheduler, name, value)

    def on_trial_complete(self, iteration: int, trials: list, trial: Trial, **info: Any) -> None:
        self._ended = True

    def on_trial_error(self, iteration: int, trials: list, trial: Trial, **info: Any) -> None:
        self._ended = True

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        if self._ended and self._controller is not None:
            self._ended = False
            self._controller.checkpoint(force=True)


def dumped(memory: dict[str, Any]) -> bytes:
    """Pickled, with trials by their names. What lives only in this run, such as an answer that is
    still awaited, is left out.
    """
    stream = io.BytesIO()
    _Pickler(stream).dump(memory)
    return stream.getvalue()


def loaded(stored: bytes, trials: list[Trial]) -> dict[str, Any]:
    """What was dumped, about these trials."""
    return _Unpickler(io.BytesIO(stored), trials).load()


# As methods: what is set from outside is not called by every version of Python.


class _Pickler(cloudpickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, Trial):
            return value.trial_id
        return GONE if isinstance(value, (ObjectRef, _FutureTrainingResult)) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, trials: list[Trial]) -> None:
        super().__init__(stream)
        self._by_name = {trial.trial_id: trial for trial in trials}

    def persistent_load(self, name: str) -> Trial | None:
        return self._by_name.get(name)
