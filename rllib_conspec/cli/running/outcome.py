"""What is said at the end of an experiment."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rllib_conspec.cli.running.found import short, what_was_found
from rllib_conspec.cli.running.progress import duration, metric
from rllib_conspec.cli.running.watch import trial_name

METRIC = "env_runners/episode_return_mean"
STEPS = "num_env_steps_sampled_lifetime"
SUCCESS = "env_runners/success_rate_20"


def summarize(name: str, directory: Path, trials: list[Any], say: Callable[[str], None]) -> None:
    """What came out, where it is, and how to look at it."""
    for trial in trials:
        last = trial.last_result or {}
        reached = metric(last, METRIC)
        label = name if len(trials) == 1 else f"{name}/{trial_name(trial)}"
        if last:
            spent = duration(metric(last, "time_total_s") or 0)
            steps, success = metric(last, STEPS), metric(last, SUCCESS)
            best = (trial.metric_analysis or {}).get(METRIC, {}).get("max")
            text = f"{label}: {last.get('training_iteration', 0)} iterations in {spent}"
            text += f", {steps:,.0f} steps" if steps is not None else ""
            text += f", success {success:.0%} in the last 20" if success is not None else ""
            text += f", return {reached:.3g}" if reached is not None else ""
            text += f" (best {best:.3g})" if best is not None and best == best else ""
            say(text)
        if trial.status == "ERROR" and trial.error_file:
            say(f"  error log   {Path(trial.storage.trial_fs_path) / Path(trial.error_file).name}")
        if trial.checkpoint:
            path = shlex.quote(short(trial.checkpoint.path))
            say(f"  checkpoint  {path}")
            say(f"  evaluate    rllib evaluate {path} --episodes 50")
            for line in what_was_found(Path(trial.checkpoint.path)):
                say(f"  {line}")
    path = shlex.quote(short(directory))
    say(f"Results: {path}  (curves: tensorboard --logdir {path})")
