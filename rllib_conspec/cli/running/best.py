"""The best trial of a sweep: its values, and the command that trains with them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from rllib_conspec.annotations import show
from rllib_conspec.cli.checks.experiment import Experiment, deep_merge
from rllib_conspec.cli.checks.space import at, nested
from rllib_conspec.cli.checks.sweep import space_of
from rllib_conspec.cli.running.progress import metric
from rllib_conspec.cli.running.watch import trial_name

DIGITS = 4  # of a drawn number: what is printed is what is trained with again
ITERATION = "training_iteration"
SEED = ("seed",)
ONE_TRIAL = {"num_samples": 1, "scheduler": "fifo", "search": "random"}


def say_best(
    experiment: Experiment, file: str | None, trials: list[Any], say: Callable[[str], None]
) -> None:
    """Say which of several trials was the best, if something differs between them that one would
    choose: the best of several seeds was lucky.
    """
    space = space_of(experiment)
    best = best_of(trials, experiment.metric, experiment.mode)
    if len(trials) < 2 or not set(space) - {SEED} or best is None:
        return
    values = {path: rounded(at(best.config, path)) for path in space}
    reached = metric(best.last_result, experiment.metric)
    say(
        f"Best of {len(trials)} trials: {trial_name(best)}, {experiment.metric} {reached:.3g} "
        f"after {best.last_result.get(ITERATION, 0)} iterations"
    )
    for path, value in values.items():
        say(f"  {'.'.join(path)}  {show(value)}")
    say(f"  train       {command(experiment, file, values)}")


def best_of(trials: list[Any], name: str, mode: str) -> Any | None:
    """The trial whose metric was best in the end; of equal ones that which took fewer iterations.

    None where no trial has it.
    """
    sign = 1 if mode == "max" else -1
    ranked = [
        (sign * reached, -(trial.last_result.get(ITERATION) or 0), -i)
        for i, trial in enumerate(trials)
        if (reached := metric(trial.last_result or {}, name)) is not None
    ]
    return trials[-max(ranked)[-1]] if ranked else None


def command(experiment: Experiment, file: str | None, values: Mapping[tuple, Any]) -> str:
    """One run with these values in place of the samplers."""
    given = experiment.overrides
    words = ["rllib", "train"] + (["-f", file] if file else [])
    for key in ("run", "env", "stop", "storage_path", "restore"):
        if key in given:
            value = given[key]
            words += [
                "--" + key.replace("_", "-"),
                value if isinstance(value, str) else json.dumps(value),
            ]
    config = deep_merge(given.get("config", {}), nested(values))
    words += ["--config", json.dumps(config), "--experiment-name", f"{experiment.name}_best"]
    # A flag stands for what the file may say besides.
    for key, plain in ONE_TRIAL.items():
        if key in given or getattr(experiment, key) != plain:
            words += ["--" + key.replace("_", "-"), str(plain)]
    return shlex.join(words)


def rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
