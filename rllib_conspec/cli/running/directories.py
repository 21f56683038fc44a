"""Which directory a run writes to, and which one a resumed run goes on in."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_conspec.cli.checks import checkpoints
from rllib_conspec.errors import UserError

_TIME = "%Y-%m-%d_%H-%M-%S"
_TIME_PATTERN = r"_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d"
_STATE = "experiment_state-*.json"


def fresh(storage: Path, name: str) -> str:
    """`name`, or `name_<time>` when there already is something under that name."""
    directory = storage / name
    if not directory.exists() or not any(directory.iterdir()):
        return name
    return f"{name}_{time.strftime(_TIME)}"


@dataclass
class Earlier:
    """An earlier run of an experiment, as Tune's state file describes it."""

    path: Path
    trials: list[Any]

    @property
    def finished(self) -> bool:
        return all(trial.status == "TERMINATED" for trial in self.trials)

    @property
    def iteration(self) -> int:
        """Iterations that are saved, of the trial that got furthest."""
        return max((_saved_iteration(trial) for trial in self.trials), default=0)


def latest(storage: Path, name: str) -> Earlier | None:
    """The most recent run of the experiment `name` that has a state to resume from."""
    pattern = re.compile(re.escape(name) + f"({_TIME_PATTERN})?")
    found = {
        directory: max(state.stat().st_mtime for state in directory.glob(_STATE))
        for directory in (storage.iterdir() if storage.is_dir() else ())
        if pattern.fullmatch(directory.name) and any(directory.glob(_STATE))
    }
    if not found:
        return None
    path = max(found, key=found.__getitem__)

    from ray.tune import ExperimentAnalysis

    try:
        trials = ExperimentAnalysis(str(path)).trials
    except Exception as error:
        if "rllib_conspec." in str(error):  # names a module or class of ours that is gone
            raise UserError(f"{path}: {checkpoints.EARLIER_VERSION}") from error
        raise UserError(f"{path}: its experiment state cannot be read: {error}") from error
    return Earlier(path, trials or [])


def check_resumable(earlier: Earlier, algorithm: str, go_on: bool) -> None:
    """Refuse a run of another algorithm, or a broken checkpoint (and name the one before it).

    `go_on`: trials that have finished are resumed as well.
    """
    for trial in earlier.trials:
        if trial.trainable_name != algorithm:
            raise UserError(f"{earlier.path}: is a run of {trial.trainable_name}, not {algorithm}.")
        if trial.status == "TERMINATED" and not go_on:
            continue
        if not trial.checkpoint:
            if trial.status == "TERMINATED":
                raise UserError(
                    f"{earlier.path}: has finished and left no checkpoint to go on from."
                )
            continue
        # The directory may have been moved since: only the names of trial and checkpoint count.
        stored = Path(trial.checkpoint.path)
        checkpoint = earlier.path / stored.parent.name / stored.name
        trouble = checkpoints.problem(checkpoint) if checkpoint.exists() else "is missing."
        if trouble:
            raise UserError(f"{checkpoint}: {trouble}{_hint(checkpoint.parent)}")
        checkpoints.read(checkpoint)  # which refuses those of an earlier version


def _hint(trial: Path) -> str:
    try:
        return f" An older one is whole; start a new run with --restore {checkpoints.find(trial)}"
    except UserError:
        return ""


def _saved_iteration(trial: Any) -> int:
    manager = trial.run_metadata.checkpoint_manager
    result = manager.latest_checkpoint_result
    return int(result.metrics.get("training_iteration", 0)) if result else 0
