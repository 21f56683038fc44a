"""What the reward models of a checkpoint found: `rllib found`, and the end of every run."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from rllib_conspec.cli.checks import checkpoints


def found(checkpoint: str, *, out: str | None, verbose: int) -> None:
    """Print and draw; see `rllib found --help` for the arguments."""
    from rllib_conspec.cli.running.cluster import quiet_loggers
    from rllib_conspec.report.found import describe_checkpoint

    quiet_loggers(verbose)
    path = checkpoints.find(checkpoint)
    lines, pictures = describe_checkpoint(path, out or path.parent)
    click.echo(f"{short(path)}:" if lines or pictures else f"{short(path)}: nothing to tell.")
    for line in (*lines, *_named(pictures)):
        click.echo(f"  {line}")


def galleries_of(checkpoint: Path) -> list[Path]:
    """Pictures of what was found, drawn beside the checkpoint; none where that cannot be."""
    if not checkpoint.is_dir():  # in a bucket
        return []
    from rllib_conspec.report.found import describe_checkpoint

    try:
        return describe_checkpoint(checkpoint, checkpoint.parent)[1]
    except Exception:  # said at the end of the run; it must not be ended by this
        return []


def what_was_found(checkpoint: Path) -> list[str]:
    """The same for the end of a run, which nothing that goes wrong here may spoil. Pictures are
    written beside the checkpoint.
    """
    if not checkpoint.is_dir():  # in a bucket
        return []
    from rllib_conspec.report.checkpoint import NoRewardModel
    from rllib_conspec.report.found import describe_checkpoint

    try:
        lines, pictures = describe_checkpoint(checkpoint, checkpoint.parent)
    except NoRewardModel:
        return []
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return [f"found       cannot be shown: {reason}"]
    return [f"found       {line}" for line in lines] + _named(pictures)


def _named(pictures: list[Path]) -> list[str]:
    return [f"picture     {shlex.quote(short(picture))}" for picture in pictures]


def short(path: str | Path) -> str:
    """Relative to the current directory when below it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)
