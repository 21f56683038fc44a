"""Run experiments with Ray Tune: progress, interrupt, resume, what to do next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.tune_config import ResumeConfig
from rich.console import Console

from rllib_conspec.cli.checks import checkpoints, environments
from rllib_conspec.cli.checks.algorithms import find_algorithm
from rllib_conspec.cli.checks.experiment import Experiment, deep_merge
from rllib_conspec.cli.checks.space import for_tune, may_be
from rllib_conspec.cli.checks.sweep import Pbt, scheduler_of, space_of, trials_of
from rllib_conspec.cli.checks.validate import reward_models, tune_config
from rllib_conspec.cli.running import cluster, directories
from rllib_conspec.cli.running.best import say_best
from rllib_conspec.cli.running.found import short
from rllib_conspec.cli.running.galleries import Galleries, OnTensorboard
from rllib_conspec.cli.running.interrupt import Interrupt, handling, pausing
from rllib_conspec.cli.running.logs import ContinuedCSV, ContinuedJson
from rllib_conspec.cli.running.outcome import summarize
from rllib_conspec.cli.running.progress import Progress
from rllib_conspec.cli.running.remembering import Remembering
from rllib_conspec.cli.running.rescue import saving_on_error
from rllib_conspec.cli.running.sweep import make_scheduler, make_search
from rllib_conspec.cli.running.watch import Watcher, trial_name
from rllib_conspec.errors import UserError

# A crash in the middle of a save must never take the last whole checkpoint with it.
MIN_CHECKPOINTS = 2
# Of a trial whose checkpoints others begin from, while it goes on.
MIN_CHECKPOINTS_PBT = 4


@dataclass
class RunOptions:
    """The flags that say how to run, rather than what."""

    file: str | None = None
    ray_address: str | None = None
    ray_num_cpus: int | None = None
    ray_num_gpus: int | None = None
    wandb: str | None = None
    verbose: int = 0
    again: str | None = None  # the command that goes on, where it is not `rllib train`


@dataclass
class Plan:
    """One experiment and the directory it runs in."""

    experiment: Experiment
    configs: list[Any]
    storage: Path
    directory: str
    earlier: directories.Earlier | None = None
    trials: list[Any] = field(default_factory=list)
    unfinished: bool = False


def plan(checked: list[tuple[Experiment, list[Any]]], resume: bool) -> list[Plan]:
    """Choose directories; with `resume`, leave out what has finished and start what never began."""
    plans, found = [], 0
    for experiment, configs in checked:
        storage = Path(experiment.storage_path).expanduser().absolute()
        earlier = directories.latest(storage, experiment.name) if resume else None
        if earlier is not None:
            found += 1
            # More iterations asked for: a finished run goes on.
            go_on = "stop" in experiment.overrides
            whole = len(earlier.trials) >= trials_of(experiment)  # a search makes them one by one
            if earlier.finished and whole and not go_on:
                continue
            name = getattr(experiment.run, "__name__", experiment.run)
            directories.check_resumable(earlier, name, go_on)
            plans.append(Plan(experiment, configs, storage, earlier.path.name, earlier))
        else:
            name = directories.fresh(storage, experiment.name)
            plans.append(Plan(experiment, configs, storage, name))
    names = ", ".join(experiment.name for experiment, _ in checked)
    where = checked[0][0].storage_path
    if resume and not found:
        raise UserError(f"--resume: no earlier run of {names} in {where}.")
    if resume and not plans:
        raise UserError(f"--resume: {names} has finished. Give a larger --stop to go on.")
    return plans


def run(plans: list[Plan], options: RunOptions, console: Console) -> int:
    """Run all plans, one after the other; returns the exit code."""

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    needed: dict[str, float] = {}
    for entry in plans:
        algorithm = find_algorithm(entry.experiment.run)
        for name, amount in cluster.resources_needed(algorithm, entry.configs).items():
            needed[name] = max(needed.get(name, 0), amount)
    cluster.start_ray(
        needed,
        options.ray_address,
        options.ray_num_cpus,
        options.ray_num_gpus,
        options.verbose,
        say,
    )
    failed = False
    for entry in plans:
        interrupt = Interrupt()
        with handling(interrupt.handle):
            failed |= not _run_one(entry, options, console, interrupt)
        summarize(entry.experiment.name, entry.storage / entry.directory, entry.trials, say)
        say_best(entry.experiment, options.file, entry.trials, say)
        interrupted = interrupt.requested and (entry.unfinished or entry is not plans[-1])
        broken = any(trial.status == "ERROR" and trial.checkpoint for trial in entry.trials)
        if interrupted or broken:
            command = options.again or resume_command(entry.experiment, options)
            say(f"Resume with: {command}")
        if interrupted:
            return 130
    return 1 if failed else 0


def resume_command(experiment: Experiment, options: RunOptions) -> str:
    """The command that goes on where an interrupted run stopped."""
    words = ["rllib", "train"]
    if options.file:
        words += ["-f", options.file]
    given = experiment.overrides
    for key in ("run", "env", "storage_path"):
        if key in given:
            words += ["--" + key.replace("_", "-"), str(given[key])]
    for key in ("scheduler", "search"):
        if key in given:
            value = given[key]
            words += [f"--{key}", value if isinstance(value, str) else json.dumps(value)]
    if options.ray_address:
        words += ["--ray-address", options.ray_address]
    if "name" in given:
        words += ["--experiment-name", given["name"]]
    return shlex.join([*words, "--resume"])


def _run_one(entry: Plan, options: RunOptions, console: Console, interrupt: Interrupt) -> bool:
    """Run one experiment to its end or interrupt; whether no trial failed."""
    experiment = entry.experiment
    path = entry.storage / entry.directory
    default = experiment.algorithm_config or find_algorithm(experiment.run).get_default_config()
    settings = experiment.algorithm_config.to_dict() if experiment.algorithm_config else {}
    settings = laid_over(settings, tune_config(default, experiment.env, experiment.config))
    environments.register(settings.get("env"))
    with Progress(console, f"{experiment.name} → {path}") as progress:
        progress.say(f"Watch it: rllib watch {shlex.quote(short(path))}")
        if entry.earlier:
            progress.say(
                f"Resuming {path} after iteration {entry.earlier.iteration}, "
                "with the settings it began with."
            )
            if not experiment.algorithm_config and (
                changed := changed_settings(entry.earlier.trials, settings)
            ):
                progress.say(f"The file says otherwise now: {', '.join(changed)}.")
        models = reward_models(entry.configs)
        watcher = Watcher(
            progress, interrupt, experiment, models, options.verbose, space_of(experiment)
        )
        scheduler = make_scheduler(experiment)
        callbacks = [watcher, Remembering(scheduler), ContinuedCSV(), ContinuedJson()]
        shown = [OnTensorboard()]
        if options.wandb:
            from rllib_conspec.cli.running.on_wandb import OnWandb

            shown.append(OnWandb(options.wandb, experiment.name))
        callbacks += [*shown, Galleries(*(one.show for one in shown))]
        analysis = tune.run(
            experiment.run,
            name=entry.directory,
            storage_path=str(entry.storage),
            metric=experiment.metric,
            mode=experiment.mode,
            stop=experiment.stop or None,
            time_budget_s=experiment.time_budget_s,
            config=for_tune(settings),
            num_samples=experiment.num_samples,
            checkpoint_config=_checkpoint_config(experiment),
            search_alg=make_search(experiment),
            scheduler=saving_on_error(pausing(scheduler, interrupt)),
            max_failures=experiment.max_failures,
            restore=_restore_path(experiment),
            resume=True if entry.earlier else None,
            resume_config=_resume_config(experiment) if entry.earlier else None,
            trial_name_creator=trial_name,
            trial_dirname_creator=trial_name,
            callbacks=callbacks,
            raise_on_failed_trial=False,
            verbose=0,
        )
    entry.trials = analysis.trials
    # Not by status: Tune calls trials that it stopped at an interrupt terminated, too.
    ended = [trial for trial in entry.trials if trial.trial_id in watcher.ended]
    entry.unfinished = len(ended) < max(len(entry.trials), trials_of(experiment))
    return not any(trial.status == "ERROR" for trial in entry.trials)


def changed_settings(trials: list[Any], settings: dict[str, Any]) -> list[str]:
    """Keys of `settings` that the first of `trials` cannot have run with."""
    if not trials:
        return []
    began = trials[0].config
    keys = sorted({*began, *settings})
    return [key for key in keys if not may_be(settings.get(key), began.get(key))]


def laid_over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the settings of `over`; mappings in it are merged."""
    merged = {
        key: deep_merge({key: base[key]}, {key: value})[key] if key in base else value
        for key, value in over.items()
    }
    return {**base, **merged}


def _checkpoint_config(experiment: Experiment) -> tune.CheckpointConfig:
    settings = {"checkpoint_at_end": True, **experiment.checkpoint_config}
    least = MIN_CHECKPOINTS_PBT if isinstance(scheduler_of(experiment), Pbt) else MIN_CHECKPOINTS
    if settings.get("num_to_keep"):
        settings["num_to_keep"] = max(least, settings["num_to_keep"])
    return tune.CheckpointConfig(**settings)


def _restore_path(experiment: Experiment) -> str | None:
    return str(checkpoints.find(experiment.restore).absolute()) if experiment.restore else None


def _resume_config(experiment: Experiment) -> ResumeConfig:
    resume = ResumeConfig.ResumeType.RESUME
    skip = ResumeConfig.ResumeType.SKIP
    finished = resume if "stop" in experiment.overrides else skip
    return ResumeConfig(finished=finished, unfinished=resume, errored=resume)
