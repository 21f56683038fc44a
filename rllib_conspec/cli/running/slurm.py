"""`rllib train --slurm`: bring a cluster up if needed, submit the run, follow its log.

`python -m rllib_conspec.cli.running.slurm` is what cluster/train.sbatch calls, with the flags of
`rllib train`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rllib_conspec.cli import train as train_module
from rllib_conspec.cli.checks import strict_yaml
from rllib_conspec.cli.checks.experiment import Experiment, load_experiments
from rllib_conspec.cli.running import cluster
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.slurm import jobs, options, train_job
from rllib_conspec.slurm.runs import Run, Status

LOCAL_FLAGS = ("ray_address", "ray_num_cpus", "ray_num_gpus")
# A resumed run keeps the settings it began with; `rllib train --resume` refuses these.
ONLY_AT_THE_START = ("config", "stop", "restore", "num_samples")
# By the Python of the job, which may be another one than the one that submits.
PROGRAM = ("python", "-m", "rllib_conspec.cli.main", "train")
FOLLOW_SECONDS = 0.5
JOB_SECONDS = 10  # between two questions to Slurm


def train(file: str | None, flags: dict[str, Any]) -> int:
    """The exit code of the run, or 0 with --print-only."""
    cluster_file = flags["slurm"]
    config = load_cluster(cluster_file)
    head = config["available_node_types"][config["head_node_type"]]
    run = describe(file, flags, gpus=head["resources"].get("GPU", 0))

    from rllib_conspec.slurm.node_provider import SlurmNodeProvider

    provider = SlurmNodeProvider(config["provider"], config["cluster_name"])
    name = f"{Path(run.results[0]).name}-{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    directory = provider.directory.runs / name
    if flags["print_only"]:
        for line in plan(config, cluster_file, provider, run, directory):
            click.echo(line)
        return 0
    if not is_up(provider):
        command = up_command(cluster_file)
        click.echo(shlex.join(["ray", *command[3:]]))
        if subprocess.run(command, check=False).returncode != 0:
            raise UserError(f"{cluster_file}: the cluster did not come up.")
    run.save(directory)
    click.echo(f"Submitted to {config['cluster_name']}: {directory}")
    click.echo("Ctrl-C stops following the log; the run goes on.")
    try:
        return follow(directory, provider)
    except KeyboardInterrupt:
        click.echo(f"\nThe run goes on. Its log: tail -f {directory}/log")
        return 130


def load_cluster(file: str) -> dict[str, Any]:
    """A cluster file, checked, with the resources of its node types filled in."""
    try:
        config = strict_yaml.load(Path(file).read_text(), file)
    except OSError as error:
        raise UserError(f"--slurm: {file}: {error.strerror}.") from error
    if not isinstance(config, dict) or not isinstance(config.get("provider"), dict):
        raise UserError(f"--slurm: {file}: is not a cluster file.")
    if config["provider"].get("type") != "external":
        raise UserError(f"--slurm: {file}: is not a Slurm cluster; use ray up and ray submit.")
    try:
        options.check_cluster(config)
    except OptionError as error:
        raise UserError(f"{file}: {error}") from error
    if config.get("head_node_type") not in config["available_node_types"]:
        raise UserError(f"{file}: head_node_type: must be one of available_node_types.")
    return options.fill_resources(config)


def describe(file: str | None, flags: dict[str, Any], gpus: int, check: bool = True) -> Run:
    """The run to start on a cluster whose head has so many GPUs; checked as `rllib train` does."""
    for name in LOCAL_FLAGS:
        if flags[name] is not None:
            raise UserError(f"--{name.replace('_', '-')}: not together with --slurm.")
    overrides = train_module.overrides_from(flags)
    if not flags["resume"]:
        extra = cluster_settings(load_experiments(file, overrides), gpus)
        overrides["config"] = {**extra, **overrides.get("config", {})}
        flags = {**flags, "config": json.dumps(overrides["config"])}
    experiments = load_experiments(file, overrides)

    if check:
        from rllib_conspec.cli.checks.validate import validate

        cluster.quiet_loggers(flags["verbose"])
        for experiment in experiments:
            validate(experiment, here=False)
    results = [
        str(Path(experiment.storage_path).expanduser().absolute() / experiment.name)
        for experiment in experiments
    ]
    begin, resume = (
        [*PROGRAM, *arguments_from(file, given), "--ray-address", "auto"]
        for given in (flags, resume_flags(flags))
    )
    return Run(begin, resume, os.getcwd(), results)


def resume_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with which the same run goes on."""
    return {**flags, **dict.fromkeys(ONLY_AT_THE_START), "resume": True}


def cluster_settings(experiments: list[Experiment], gpus: int) -> dict[str, Any]:
    """Settings that put the learner on the head and its GPU, unless an experiment has its own."""
    settings: dict[str, Any] = {"custom_resources_for_main_process": {options.LEARNER: 0.001}}
    if gpus:
        settings["num_gpus_per_learner"] = 1
    for experiment in experiments:
        given = dict(experiment.config)
        if experiment.algorithm_config is not None:
            given |= {key: value for key, value in experiment.algorithm_config.items() if value}
        if given.get("num_learners", 0) or "num_gpus_per_learner" in given:
            settings.pop("num_gpus_per_learner", None)
        if "custom_resources_for_main_process" in given:
            settings.pop("custom_resources_for_main_process", None)
    return settings


def arguments_from(file: str | None, flags: dict[str, Any]) -> list[str]:
    """The command line that `flags` came from."""
    words = ["-f", file] if file else []
    command = train_module.with_options(click.command()(lambda **_: None))
    for option in command.params:
        value = flags.get(option.name)
        if value in (None, False, 0) and not option.secondary_opts:
            continue
        if option.name in ("slurm", "print_only") or value is None:
            continue
        if option.count:
            words.append("-" + "v" * value)
        elif option.is_flag:
            words.append((option.opts if value else option.secondary_opts)[0])
        else:
            words += [option.opts[0], str(value)]
    return words


def up_command(cluster_file: str) -> list[str]:
    # Without Ray's cache in /tmp, where everybody may write.
    words = ["up", "--yes", "--no-config-cache", cluster_file]
    return [sys.executable, "-m", "ray.scripts.scripts", *words]


def heads(provider: Any) -> list[jobs.Job]:
    return [job for job in provider.jobs(fresh=True).values() if job.is_head]


def is_up(provider: Any) -> bool:
    """Whether there is a head that was started once; it may be back in the queue just now."""
    from ray.autoscaler.tags import STATUS_UP_TO_DATE, TAG_RAY_NODE_STATUS

    return any(
        job.alive and job.tags.get(TAG_RAY_NODE_STATUS) == STATUS_UP_TO_DATE
        for job in heads(provider)
    )


def follow(directory: Path, provider: Any) -> int:
    """Print the log as it grows, and where the head stands when that changes; the exit code."""
    seen, shown, asked = 0, "RUNNING", time.monotonic()
    while True:
        over = Status.of(directory)  # before reading: what comes after it is not lost
        log = directory / "log"
        if log.exists():
            with log.open("rb") as stream:
                stream.seek(seen)
                new = stream.read()
            seen += len(new)
            click.echo(new.decode(errors="replace"), nl=False)
        if over.over:
            return int(over.code or 0)
        if time.monotonic() - asked > JOB_SECONDS:
            asked = time.monotonic()
            found = heads(provider)  # one that is ending may be on its way back into the queue
            if not found and not Status.of(directory).over:
                raise UserError(f"the head job has ended; its log is in {provider.directory.logs}.")
            state = found[0].state if found else shown
            if state != shown:
                click.echo(f"The head job is {state}.")
                shown = state
        time.sleep(FOLLOW_SECONDS)


def plan(
    config: dict[str, Any], cluster_file: str, provider: Any, run: Run, directory: Path
) -> Iterator[str]:
    """What would be done, for --print-only. Asks Slurm nothing."""
    from rllib_conspec.slurm.sbatch import head_script, worker_script

    name = config["cluster_name"]
    common = (provider.directory, provider.temp_dir)
    yield f"1. Unless the cluster {name} is up:"
    yield f"     ray up --yes --no-config-cache {shlex.quote(cluster_file)}"
    yield "   which submits the head with sbatch:"
    for kind, node_type in config["available_node_types"].items():
        node = node_type["node_config"]
        if kind == config["head_node_type"]:
            script = head_script(name, node, "TAGS", *common)
        else:
            most = node_type.get("max_workers", config.get("max_workers", 0))
            yield f"   and, when there is work for them, up to {most} workers of type {kind}:"
            script = worker_script(name, node, "TAGS", *common, kind, node_type["resources"], {})
        yield from (f"     {line}" for line in script.splitlines())
    yield f"2. On the head, in {run.cwd}:"
    yield f"     rllib train {shlex.join(run.command[len(PROGRAM) :])}"
    yield f"3. Follow {directory}/log"


@click.command()
@click.argument("words", nargs=-1)
@click.option("-f", "--file", "file", type=click.Path())
@train_module.with_options
def main(words: tuple[str, ...], file: str | None, **flags: Any) -> None:
    """Inside a batch job: start Ray on its nodes and train."""
    if "SLURM_JOB_ID" not in os.environ:
        raise UserError("this is for a Slurm job: sbatch cluster/train.sbatch -f FILE")
    cluster.prepare_environment(flags["verbose"])
    gpus = int(os.environ.get("SLURM_GPUS_ON_NODE") or 0)
    # Not checked here: that imports all of RLlib, and `rllib train` does it again at once.
    sys.exit(train_job.run_in_job(lambda: describe(file, flags, gpus, check=False)))


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        click.echo(f"rllib: {error}", err=True)
        sys.exit(2)
