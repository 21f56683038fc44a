"""What is there of a run already: trials on disk, and curves that are kept in `docs/results/`.

A trial has ended when its last row says so. What ended is not run again. Its curve is written as a
small CSV (steps, and the mean of 20 iterations), which can be kept in `docs/results/reproduce/`.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from rllib_conspec.errors import UserError
from rllib_conspec.report.curves import SUCCESS, Curve, curve_of
from rllib_conspec.report.trials import RESULTS, STEPS, read_trial
from rllib_conspec.reproduce.expectations import Outcome
from rllib_conspec.reproduce.figure import Figure, Run

# Beside the package, in a checkout; an installation has none.
KEPT = Path(__file__).resolve().parents[2] / "docs" / "results"
_TIME = r"(_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)?"


def directories(storage: Path, run: Run) -> list[Path]:
    """Of all times that it was started: a later start gets the time into its name."""
    pattern = re.compile(re.escape(run.name) + _TIME)
    found = storage.iterdir() if storage.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and pattern.fullmatch(path.name))


def from_trials(storage: Path, run: Run, figure: Figure) -> dict[int, Outcome]:
    """By seed, ended or not. Of several trials of one seed, the one that ended or got furthest."""
    found: dict[int, Outcome] = {}
    columns = (STEPS, "/".join(figure.metric))
    for directory in directories(storage, run):
        for file in sorted(directory.glob(f"*/{RESULTS}")):
            trial = read_trial(file.parent, columns)
            curve = curve_of(trial, figure.metric)
            if trial.seed is None or not len(curve.steps):
                continue
            outcome = Outcome(int(trial.seed), curve, trial.status == "finished")
            before = found.get(outcome.seed)
            if before is None or _rank(before) < _rank(outcome):
                found[outcome.seed] = outcome
    return found


def _rank(outcome: Outcome) -> tuple[bool, float]:
    return outcome.ended, outcome.played


def kept_files(run: Run, scale: str) -> list[Path]:
    """Curves of this run that the repository keeps: of `rllib reproduce`, else older ones."""
    own = sorted(KEPT.glob(f"reproduce/{scale}/{run.name}_[0-9]*.csv"))
    exact = re.compile(re.escape(run.name) + r"_\d+")
    own = [file for file in own if exact.fullmatch(file.stem)]
    return own or (sorted(KEPT.glob(run.known)) if run.known else [])


def seed_of(file: Path) -> int:
    return int(file.stem.rpartition("_")[2])


def from_kept(run: Run, scale: str, figure: Figure) -> dict[int, Outcome]:
    found = {}
    for file in kept_files(run, scale):
        seed = seed_of(file)
        found[seed] = Outcome(seed, read_csv(file, figure.metric), ended=True)
    return found


def read_csv(file: Path, metric: tuple[str, ...]) -> Curve:
    """Success rates are kept as means of 20 iterations; returns as such means, or of a few."""
    columns = ("success_rate_20",) if metric == SUCCESS else ("return_20", "return")
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    column = next((name for name in columns if rows and name in rows[0]), None)
    if column is None or "steps" not in rows[0]:
        raise UserError(f"{file}: expected rows with steps and {' or '.join(columns)}.")
    try:
        steps, values = ([float(row[name]) for row in rows] for name in ("steps", column))
    except (TypeError, ValueError) as error:
        raise UserError(f"{file}: not a table of numbers: {error}") from error
    return Curve(np.array(steps), np.array(values))


def write_csv(outcome: Outcome, file: Path, metric: tuple[str, ...]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    column = "success_rate_20" if metric == SUCCESS else "return_20"
    curve = outcome.curve
    rows = zip(curve.steps, curve.values, strict=True)
    lines = [f"{steps:.0f},{value:.4g}" for steps, value in rows]
    file.write_text("\n".join([f"steps,{column}", *lines, ""]))
