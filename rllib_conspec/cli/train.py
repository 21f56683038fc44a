"""`rllib train`: from flags to experiments, checked, then run."""

from __future__ import annotations

import sys
from typing import Any

import click

from rllib_conspec.errors import UserError

_FILE = click.Path(dir_okay=False)
_DIR = click.Path()

# Every default is None: only what is given on the command line overrides the file.
OPTIONS = [
    click.option("--run", "--algo", "run", metavar="NAME", help="Algorithm: PPO, SAC …"),
    click.option("--env", metavar="ID", help="Gymnasium id, module:Id-v0, or module:Class."),
    click.option("--config", metavar="JSON", help="Settings, laid deeply over the file's config."),
    click.option("--stop", metavar="JSON", help="Stop criteria, in place of the file's."),
    click.option("--experiment-name", metavar="NAME", help="Name of the results directory."),
    click.option("--num-samples", type=click.IntRange(min=1), help="Repeat every trial N times."),
    click.option("--storage-path", type=_DIR, help="Where results go. [default: results]"),
    click.option("--restore", type=_DIR, help="Start every trial from this checkpoint."),
    click.option("--resume", is_flag=True, help="Go on with the latest run of this experiment."),
    click.option(
        "--checkpoint-freq", type=click.IntRange(min=0), help="Iterations between checkpoints."
    ),
    click.option(
        "--checkpoint-at-end/--no-checkpoint-at-end",
        default=None,
        help="Save when a trial ends. [default: yes, unless the file says no]",
    ),
    click.option(
        "--keep-checkpoints-num",
        type=click.IntRange(min=1),
        help="Keep the newest N checkpoints (never fewer than 2). [default: all]",
    ),
    click.option("--ray-address", metavar="HOST:PORT", help="Join a cluster (or: auto)."),
    click.option("--ray-num-cpus", type=click.IntRange(min=1), help="CPUs of the local Ray."),
    click.option("--ray-num-gpus", type=click.IntRange(min=0), help="GPUs of the local Ray."),
    click.option("--scheduler", metavar="NAME|JSON", help="Which trials end early: asha, pbt …"),
    click.option("--search", metavar="NAME|JSON", help="Where values come from: random, optuna."),
    click.option("--wandb", metavar="PROJECT", help="Log to Weights & Biases as well."),
    click.option("--slurm", type=_FILE, metavar="CLUSTER.yaml", help="Train on a Slurm cluster."),
    click.option("--print-only", is_flag=True, help="With --slurm: only show what would be done."),
    click.option("-v", "--verbose", count=True, help="Show Ray's log; -vv: tracebacks too."),
]


def with_options(command: Any) -> Any:
    """Add all flags of `rllib train` to a click command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def overrides_from(flags: dict[str, Any]) -> dict[str, Any]:
    """What the flags say about the experiment, in the form of an experiment file."""
    from rllib_conspec.cli.checks.experiment import parse_choice, parse_mapping

    names = {
        "run": "run",
        "env": "env",
        "experiment_name": "name",
        "num_samples": "num_samples",
        "storage_path": "storage_path",
        "restore": "restore",
    }
    found = {key: flags[flag] for flag, key in names.items() if flags[flag] is not None}
    for key in ("config", "stop"):
        if flags[key] is not None:
            found[key] = parse_mapping(flags[key], f"--{key}")
    for key in ("scheduler", "search"):
        if flags[key] is not None:
            found[key] = parse_choice(flags[key], f"--{key}")
    checkpointing = {
        "checkpoint_frequency": flags["checkpoint_freq"],
        "checkpoint_at_end": flags["checkpoint_at_end"],
        "num_to_keep": flags["keep_checkpoints_num"],
    }
    checkpointing = {key: value for key, value in checkpointing.items() if value is not None}
    if checkpointing:
        found["checkpoint_config"] = checkpointing
    return found


def train(file: str | None, **flags: Any) -> None:
    """Check everything, then run; leaves through `sys.exit` with the run's exit code."""
    from rllib_conspec.cli.running.interrupt import exit_with

    exit_with(lambda: _train(file, flags))


def _train(file: str | None, flags: dict[str, Any]) -> int:
    from rich.console import Console

    from rllib_conspec.cli.checks.experiment import load_experiments
    from rllib_conspec.cli.running import cluster

    verbose = flags["verbose"]
    cluster.prepare_environment(verbose)
    if flags["slurm"]:
        from rllib_conspec.cli.running import slurm

        return slurm.train(file, flags)
    if flags["print_only"]:
        raise UserError("--print-only: only together with --slurm.")
    overrides = overrides_from(flags)
    if flags["resume"]:
        for key in ("config", "restore", "num_samples"):
            if key in overrides:
                name = "--" + key.replace("_", "-")
                raise UserError(f"{name}: a resumed run keeps the settings it began with.")
    experiments = load_experiments(file, overrides)
    console = Console()
    names = ", ".join(experiment.name for experiment in experiments)
    console.print(f"Checking {names}, then starting Ray …", highlight=False, markup=False)
    sys.stdout.flush()  # importing RLlib takes seconds

    from rllib_conspec.cli.checks.validate import validate
    from rllib_conspec.cli.running import run as running

    cluster.quiet_loggers(verbose)
    here = not flags["ray_address"]
    checked = [(experiment, validate(experiment, here=here)) for experiment in experiments]
    plans = running.plan(checked, resume=flags["resume"])
    options = running.RunOptions(
        file=file,
        ray_address=flags["ray_address"],
        ray_num_cpus=flags["ray_num_cpus"],
        ray_num_gpus=flags["ray_num_gpus"],
        wandb=flags["wandb"],
        verbose=verbose,
    )
    return running.run(plans, options, console)
