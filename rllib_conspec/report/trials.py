"""Trials on disk: `result.json`, `params.json`, errors and checkpoints, as Ray Tune leaves them.

Rows are read one at a time, and of every row only the columns that are asked for stay: hundreds of
long trials fit into memory. What is cut short, missing or unreadable is a gap that is noted, never
an exception, because a run may be going on or may have been killed at any moment.
"""

from __future__ import annotations

import json
import re
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rllib_conspec.errors import UserError

RESULTS = "result.json"
STEPS = "num_env_steps_sampled_lifetime"
SECONDS = "time_total_s"
ITERATION = "training_iteration"
SUCCESS = "env_runners/success_rate"
RETURN = "env_runners/episode_return_mean"
COLUMNS = (STEPS, SECONDS, ITERATION, SUCCESS, RETURN)

QUIET_SECONDS = 600.0  # a trial that wrote nothing for so long is not running any more
# What Tune repeats in every line: two thirds of its length, and the same each time.
_CONFIG, _AFTER = b', "config": {', b', "time_since_restore": '
_TIME = re.compile(r"_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$")
_NUMBER = re.compile(r"(\d+)")
_ALGORITHM = re.compile(rb'\\"trainable_name\\": \\"(.*?)\\"')


class ResultFile:
    """The rows of one `result.json`, also while it grows: `new` gives what came since last time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.offset = 0  # bytes that were read
        self.damaged = 0  # whole lines that are not JSON objects
        self.waiting = False  # the last line has no end yet

    def new(self) -> Iterator[dict[str, Any]]:
        """Rows that are whole by now, without the configuration. Half a line stays for next time;
        a file that became shorter is read from its beginning. Raises OSError.
        """
        with self.path.open("rb") as stream:
            if stream.seek(0, 2) < self.offset:
                self.offset = self.damaged = 0
            stream.seek(self.offset)
            self.waiting = False
            for line in stream:
                if not line.endswith(b"\n"):
                    row = _row(line)  # the last line of a file may be whole without an end
                    self.waiting = row is None
                    if row is None:
                        return
                else:
                    row = _row(line)
                self.offset += len(line)
                if row is not None:
                    yield row
                elif line.strip():
                    self.damaged += 1


def _row(line: bytes) -> dict[str, Any] | None:
    begin, end = line.find(_CONFIG), line.rfind(_AFTER)
    if 0 < begin < end:
        row = _object(line[:begin] + line[end:])
        # Otherwise these were keys of something inside of the row.
        if row is not None and "time_since_restore" in row:
            return row
    row = _object(line)
    if row is not None:
        row.pop("config", None)
    return row


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:  # of JSON, and of bytes that are no text
        return None
    return found if isinstance(found, dict) else None


def value(row: Mapping[str, Any], column: str) -> float:
    """The number at `a/b/c` in a row; NaN where there is none."""
    found: Any = row
    for key in column.split("/"):
        found = found.get(key) if isinstance(found, dict) else None
    return float(found) if isinstance(found, (int, float)) else float("nan")


@dataclass(frozen=True, eq=False)
class Trial:
    """One trial: what it was, and some columns of its results."""

    path: Path
    params: Mapping[str, Any]  # as the experiment file had them
    algorithm: str  # "" where nothing says so
    status: str  # finished, running, failed or stopped
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)  # [rows], NaN where missing
    gaps: tuple[str, ...] = ()  # what could not be read, one line each
    error: str = ""  # last line of what it failed with

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def experiment(self) -> str:
        """Without the time that a second run of that name has in its own."""
        return _TIME.sub("", self.path.parent.name)

    @property
    def seed(self) -> Any:
        return self.params.get("seed")

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @cached_property
    def checkpoints(self) -> list[Path]:
        """The newest first, whole or not."""
        return sorted(self.path.glob("checkpoint_*"), reverse=True)

    def last(self, column: str) -> float:
        """The last number in a column; NaN if there is none."""
        values = self.columns.get(column, np.zeros(0))
        known = values[~np.isnan(values)]
        return float(known[-1]) if len(known) else float("nan")


def find_trials(paths: Iterable[str | Path]) -> list[Path]:
    """The directories of all trials below these paths, each once. A UserError for a path that is
    not there, cannot be looked into or has no trial.
    """
    found: dict[Path, None] = {}
    for given in paths:
        root = Path(given).expanduser()
        if root.name == RESULTS:
            root = root.parent
        try:
            if not root.is_dir():
                what = "is a file, not a results directory" if root.exists() else "is not there"
                raise UserError(f"{given}: {what}.")
            next(root.iterdir(), None)  # raises where the search would be silently empty
            below = sorted({file.parent for file in root.rglob(RESULTS)}, key=_counted)
        except OSError as error:
            raise UserError(f"{given}: cannot be read: {error.strerror}.") from error
        if not below:
            raise UserError(f"{given}: no trial in it (no {RESULTS} here or below).")
        found |= dict.fromkeys(below)
    return list(found)


def _counted(path: Path) -> list[tuple[int, str]]:
    """For sorting: trial_10 comes after trial_9."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in _NUMBER.split(str(path))]


def read_trial(path: str | Path, columns: Sequence[str] = COLUMNS) -> Trial:
    """Read one trial's directory, keeping these columns of its results."""
    path, gaps = Path(path), []
    file = ResultFile(path / RESULTS)
    kept = {column: array("d") for column in columns}
    done = False
    try:
        for row in file.new():
            done = bool(row.get("done"))
            for column, values in kept.items():
                values.append(value(row, column))
    except OSError as error:
        gaps.append(f"{file.path}: cannot be read: {error.strerror}")
    if file.waiting:
        gaps.append(f"{file.path}: the last line is cut short and was left out")
    if file.damaged:
        lines = "1 line is" if file.damaged == 1 else f"{file.damaged} lines are"
        gaps.append(f"{file.path}: {lines} no JSON object and left out")
    arrays = {column: np.array(values) for column, values in kept.items()}
    rows = len(next(iter(arrays.values()), ()))
    if rows and STEPS in arrays and np.isnan(arrays[STEPS]).all():
        gaps.append(f"{file.path}: no column {STEPS}, so no curve against steps")
    params, trouble = _params(path)
    error = failure(path)
    status = "finished" if done else "failed" if error else _still(file.path)
    gaps += [trouble] if trouble else []
    return Trial(path, params, _algorithm(path), status, arrays, tuple(gaps), "" if done else error)


def _params(path: Path) -> tuple[dict[str, Any], str]:
    try:
        params = json.loads((path / "params.json").read_bytes())
    except OSError as error:
        return {}, f"{path / 'params.json'}: cannot be read: {error.strerror}"
    except ValueError:
        params = None
    if not isinstance(params, dict):
        return {}, f"{path / 'params.json'}: is no JSON object"
    return params, ""


def failure(path: Path) -> str:
    """The last line of an error that the trial did not go on after."""
    try:
        written = (path / "error.txt").stat().st_mtime
        if (path / RESULTS).stat().st_mtime > written + 1:
            return ""
        lines = (path / "error.txt").read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else "failed without a word"


def _still(file: Path) -> str:
    try:
        return "running" if time.time() - file.stat().st_mtime < QUIET_SECONDS else "stopped"
    except OSError:
        return "stopped"


def _algorithm(path: Path) -> str:
    """From Tune's state file beside the trial."""
    for state in sorted(path.parent.glob("experiment_state-*.json"), reverse=True):
        try:
            found = _ALGORITHM.search(state.read_bytes())
        except OSError:
            continue
        if found:
            return found[1].decode(errors="replace")
    return ""


def read_metrics(path: Path, section: str) -> tuple[np.ndarray, dict[str, dict[str, np.ndarray]]]:
    """Steps [rows] and what stands in one section of a trial's rows: metric → part → [rows], NaN
    where missing. A metric that is one number has one part, "".
    """
    steps: list[float] = []
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in ResultFile(path / RESULTS).new():
        own = row.get(section)
        for name, measured in own.items() if isinstance(own, dict) else ():
            parts = measured if isinstance(measured, dict) else {"": measured}
            for part, number in parts.items():
                if isinstance(number, (int, float)):
                    found.setdefault(name, {}).setdefault(part, {})[len(steps)] = float(number)
        steps.append(value(row, STEPS))
    whole = {
        name: {part: _dense(known, len(steps)) for part, known in parts.items()}
        for name, parts in found.items()
    }
    return np.array(steps), whole


def _dense(known: Mapping[int, float], length: int) -> np.ndarray:
    values = np.full(length, np.nan)
    values[list(known)] = list(known.values())
    return values


def read_configuration(path: Path) -> dict[str, Any]:
    """All settings of a trial, with defaults, as its first row tells them; empty if it does not."""
    try:
        with (path / RESULTS).open("rb") as stream:
            row = json.loads(stream.readline())
        return row.get("config") or {}
    except (OSError, ValueError, AttributeError):
        return {}
