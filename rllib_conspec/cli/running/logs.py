"""progress.csv and result.json that a resumed run continues as if it had never stopped.

A run that was killed has written iterations that its last checkpoint does not know. Resumed, it
does them again: the old lines have to go, and new rows of the table belong under its columns.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, TextIO

from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback

ITERATION = "training_iteration"


class ContinuedCSV(CSVLoggerCallback):
    """Tune's progress.csv, continued."""

    def log_trial_result(self, iteration: int, trial: Any, result: dict) -> None:
        if trial not in self._trial_files:
            self._setup_trial(trial)
        if self._trial_continue[trial] and not self._trial_csv[trial]:
            self._trial_csv[trial] = _continue_csv(self._trial_files[trial], result[ITERATION])
        super().log_trial_result(iteration, trial, result)


class ContinuedJson(JsonLoggerCallback):
    """Tune's result.json (one object a line), continued."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[Any] = set()

    def log_trial_result(self, iteration: int, trial: Any, result: dict) -> None:
        if trial not in self._trial_files:
            self.log_trial_start(trial)
        if trial not in self._begun:
            self._begun.add(trial)
            _drop_json(self._trial_files[trial], result[ITERATION])
        super().log_trial_result(iteration, trial, result)


def _continue_csv(stream: TextIO, iteration: int) -> csv.DictWriter:
    """Drop the rows from `iteration` on; a writer for the columns that are there."""
    with open(stream.name, newline="") as written:
        reader = csv.DictReader(written)
        header = reader.fieldnames
        rows = [row for row in reader if _before(row.get(ITERATION), iteration)]
    stream.truncate(0)
    writer = csv.DictWriter(stream, header)
    writer.writeheader()
    # A row that was cut short in mid-line has no value, or a surplus one under the key None.
    writer.writerows({name: row.get(name) for name in header} for row in rows)
    stream.flush()
    return writer


def _drop_json(stream: TextIO, iteration: int) -> None:
    kept = []
    for line in Path(stream.name).read_text().splitlines():
        try:
            if _before(json.loads(line).get(ITERATION), iteration):
                kept.append(line + "\n")
        except ValueError:
            continue  # cut short in mid-line
    stream.truncate(0)
    stream.writelines(kept)
    stream.flush()


def _before(value: Any, iteration: int) -> bool:
    try:
        return int(value) < iteration
    except (TypeError, ValueError):
        return False
