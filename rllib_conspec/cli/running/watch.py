"""A Tune callback that follows the trials of one experiment."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ray import tune

from rllib_conspec.annotations import show
from rllib_conspec.cli.checks import checkpoints
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.checks.space import at
from rllib_conspec.cli.running.interrupt import Interrupt
from rllib_conspec.cli.running.progress import Progress
from rllib_conspec.reward_models.base import RewardModel


def trial_name(trial: Any) -> str:
    """A short name that is also a directory name: trial_0, trial_1_lr=0.001 …"""
    number, _, _ = trial.experiment_tag.partition("_")
    values = {key.rpartition("/")[2]: value for key, value in trial.evaluated_params.items()}
    told = ",".join(f"{key}={_briefly(value)}" for key, value in sorted(values.items()))
    name = "_".join(part for part in ("trial", str(int(number)), told) if part)
    return "".join(c if c.isalnum() or c in "_-=.," else "-" for c in name)[:100]


def _briefly(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    return _briefly(value) if isinstance(value, float) else show(value)


class Watcher(tune.Callback):
    """Follows the trials of one experiment."""

    def __init__(
        self,
        progress: Progress,
        interrupt: Interrupt,
        experiment: Experiment,
        models: Sequence[type[RewardModel]] = (),
        verbose: int = 0,
        space: Collection[tuple[str, ...]] = (),
    ):
        self._progress = progress
        self._interrupt = interrupt
        self._experiment = experiment
        self._models = models  # of any of the trials
        self._verbose = verbose
        self._space = space  # paths in the trials' configurations whose values differ
        self._values: dict[str, dict[str, Any]] = {}
        self._reported: set[str] = set()
        self.ended: set[str] = set()

    def on_step_begin(self, iteration: int, trials: list, **info: Any) -> None:
        # The state of a resumed trial holds the old criteria.
        if "stop" in self._experiment.overrides:
            for trial in trials:
                trial.stopping_criterion = self._experiment.stop

    def on_step_end(self, iteration: int, trials: list, **info: Any) -> None:
        self._interrupt.announce(self._progress.say)
        if self._interrupt.requested and not any(
            trial.status == "RUNNING" and trial.trial_id in self._reported for trial in trials
        ):
            self._interrupt.end_tune_loop()

    def on_trial_start(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        name = self._experiment.name
        name = name if len(trials) == 1 else f"{name}/{trial_name(trial)}"
        stop = trial.stopping_criterion or {}
        self._progress.started(trial.trial_id, name, stop, self._models)
        values = {".".join(path): at(trial.config, path) for path in self._space}
        before = self._values.setdefault(trial.trial_id, values)
        if before != values:
            self._values[trial.trial_id] = values
            told = ", ".join(f"{key} {_shown(value)}" for key, value in values.items())
            self._progress.say(f"{name} goes on from a better one, with {told}")

    def on_trial_result(
        self, iteration: int, trials: list, trial: Any, result: dict, **info: Any
    ) -> None:
        self._reported.add(trial.trial_id)
        self._progress.result(trial.trial_id, result)

    def on_checkpoint(
        self, iteration: int, trials: list, trial: Any, checkpoint: Any, **info: Any
    ) -> None:
        if Path(checkpoint.path).is_dir():  # not in a bucket
            checkpoints.write_manifest(Path(checkpoint.path))

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self.ended.add(trial.trial_id)
        self._progress.ended(trial.trial_id, "finished")

    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._report_error(trial, "failed and starts again from its last checkpoint")

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self.ended.add(trial.trial_id)
        self._progress.ended(trial.trial_id, "failed")
        self._report_error(trial, "failed")

    def _report_error(self, trial: Any, what: str) -> None:
        text = Path(trial.error_file).read_text()
        self._progress.say(f"rllib: {trial_name(trial)} {what}: {error_line(text)}")
        if self._verbose > 1:
            self._progress.say(text)


def error_line(text: str) -> str:
    """The last line of a traceback that names an exception and says something.

    RLlib raises bare exceptions from those of an environment: only the cause has a message.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Lost): \S", line)]
    return (named or lines or ["unknown error"])[-1]
