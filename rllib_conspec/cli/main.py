"""The `rllib` command. Heavy modules are imported inside the commands: --help answers at once."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import click

import rllib_conspec
from rllib_conspec.cli import examples as examples_module
from rllib_conspec.cli import train as train_module
from rllib_conspec.errors import UserError


class _OneLineErrors(click.Group):
    """Answers every error by one line; the traceback is for -vv."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except Exception as error:
            if "-vv" in sys.argv:
                traceback.print_exc()
            expected = isinstance(error, UserError)
            text = str(error) if expected else f"{type(error).__name__}: {error}"
            hint = "" if expected else " (-vv shows where)"
            click.echo(f"rllib: {' '.join(text.split())}{hint}", err=True)
            sys.exit(2 if expected else 1)


@click.group(cls=_OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rllib_conspec.__version__, prog_name="rllib")
def main() -> None:
    """Train and evaluate reinforcement learning agents with Ray RLlib and reward models.

    \b
    rllib train -f tuned_examples/keys2.yaml
    rllib train --run PPO --env CartPole-v1 --stop '{"training_iteration": 20}'
    rllib evaluate results/keys2 --episodes 50
    rllib found results/keys2
    rllib watch results/keys2
    rllib report results -o report
    rllib record keys1.rec -f tuned_examples/keys1.yaml
    rllib example list
    rllib reproduce list
    """


@main.command()
@click.argument("words", nargs=-1, metavar="[file FILE]")
@click.option("-f", "--file", "file", type=click.Path(), help="Experiment file, .yaml or .py.")
@train_module.with_options
def train(words: tuple[str, ...], file: str | None, **flags: Any) -> None:
    """Train from an experiment FILE, or from --run and --env alone.

    Flags override the file, and nothing else does. Experiments of a file run one after the other;
    the trials of one experiment (grid_search, --num-samples) run together as far as CPUs allow.
    Ctrl-C saves and prints how to resume.
    """
    if words:
        if words[0] != "file" or len(words) != 2 or file is not None:
            raise UserError(
                f'train: unexpected "{" ".join(words)}". Use: rllib train -f FILE [options]'
            )
        file = words[1]
    train_module.train(file, **flags)


@main.command()
@click.argument("checkpoint", type=click.Path())
@click.option("--episodes", type=click.IntRange(min=1), help="How many. [default: 10]")
@click.option("--steps", type=click.IntRange(min=1), help="Stop after this many steps instead.")
@click.option("--explore", is_flag=True, help="Sample actions instead of taking the best one.")
@click.option("--env", metavar="ID", help="Another environment with the same spaces.")
@click.option("--env-config", metavar="JSON", help="Laid over the checkpoint's env_config.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the first episode."
)
@click.option("--out", type=click.Path(dir_okay=False), help="Write every episode to this .json.")
@click.option("--render", type=click.Path(file_okay=False), help="Write a .gif per episode here.")
@click.option("-v", "--verbose", count=True, help="Show warnings; -vv: tracebacks too.")
def evaluate(checkpoint: str, **flags: Any) -> None:
    """Run the policy of a CHECKPOINT and print its return, success rate and length.

    CHECKPOINT may also be a trial or experiment directory: the newest whole checkpoint is taken.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(flags["verbose"])
    from rllib_conspec.cli.running.evaluate import evaluate as run_evaluation

    run_evaluation(checkpoint, **flags)


@main.command()
@click.argument("checkpoint", type=click.Path())
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False),
    help="Write pictures here. [default: beside the checkpoint]",
)
@click.option("-v", "--verbose", count=True, help="Show warnings; -vv: tracebacks too.")
def found(checkpoint: str, **flags: Any) -> None:
    """Tell and draw what the reward models of a CHECKPOINT found.

    CHECKPOINT may also be a trial or experiment directory: the newest whole checkpoint is taken.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(flags["verbose"])
    from rllib_conspec.cli.running.found import found as tell

    tell(checkpoint, **flags)


@main.command()
@click.argument("run", type=click.Path(), default="results")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Of the page; 0: any free one. [default: 7007, or any if that is taken]",
)
def watch(run: str, port: int | None) -> None:
    """Watch RUN in the browser while it trains: curves, what was found, workers' health.

    RUN is the directory of a run or of one of its trials; by default all of results/. The page is
    served on this machine only, and follows the run through restarts, until Ctrl-C.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(0)
    from rllib_conspec.report.live.server import serve

    serve(run, port, click.echo)


@main.command()
@click.argument("results", nargs=-1, required=True, metavar="[LABEL=]RESULTS...")
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    default="report",
    show_default=True,
    help="Directory for the page and its pictures.",
)
@click.option("--iqm", is_flag=True, help="Interquartile means and bootstrap intervals.")
@click.option(
    "--threshold",
    type=float,
    default=0.9,
    show_default=True,
    help="Of success (of returns, where there is none): when was it reached?",
)
@click.option("-v", "--verbose", count=True, help="Show warnings; -vv: tracebacks too.")
def report(results: tuple[str, ...], **flags: Any) -> None:
    """Write a page about one or many trials: curves, tables, what was found, configuration.

    RESULTS are trial, experiment or results directories. Trials that differ only in their seed are
    one group; those with a LABEL of yours are one, too. The page needs no network.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(flags["verbose"])
    from rllib_conspec.cli.running.report import report as write

    write(results, **flags)


@main.command()
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("-f", "--file", "file", type=click.Path(), help="Experiment file: what is played.")
@click.option("--env", metavar="ID", help="Another environment.")
@click.option("--env-config", metavar="JSON", help="Laid over the file's env_config.")
@click.option("--policy", type=click.Path(), help="Play with the policy of this checkpoint.")
@click.option(
    "--actions",
    type=click.Path(),
    multiple=True,
    help="Play the actions in this file (`RIGHT*12 FIRE 3 …`); once for every episode.",
)
@click.option("--keyboard", is_flag=True, help="Play yourself, in this terminal.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Random actions last up to so many steps each.",
)
@click.option(
    "--only",
    metavar="ACTION",
    multiple=True,
    help="Random actions are of these, by number or name; once for each of them.",
)
@click.option(
    "--episodes", type=click.IntRange(min=1), default=8, show_default=True, help="To keep."
)
@click.option("--all", "all_episodes", is_flag=True, help="Keep all, not only successes.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Give up after so many.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the first episode."
)
@click.option("-v", "--verbose", count=True, help="Show warnings; -vv: tracebacks too.")
def record(out: str, **flags: Any) -> None:
    """Record successful episodes into the file OUT, as demonstrations to learn from.

    Without --policy, --actions or --keyboard actions are random, and episodes are played until
    enough have succeeded. A run starts from them with the option `demonstrations: OUT`.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(flags["verbose"])
    from rllib_conspec.cli.running.record import record as run_recording

    run_recording(out, **flags)


@main.command()
@click.argument("figure", metavar="FIGURE|list")
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="small: our settings, one core a run. paper: the paper's sizes.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of a system."
)
@click.option("--known", is_flag=True, help="Use kept curves (docs/results/) in place of runs.")
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    default="results/reproduce",
    show_default=True,
    help="Where runs, pictures and pages go.",
)
@click.option("--dry-run", is_flag=True, help="Only print the commands that would be run.")
@click.option("--ray-address", metavar="HOST:PORT", help="Join a cluster (or: auto).")
@click.option("--ray-num-cpus", type=click.IntRange(min=1), help="CPUs of the local Ray.")
@click.option("-v", "--verbose", count=True, help="Show Ray's log; -vv: tracebacks too.")
def reproduce(figure: str, dry_run: bool, out: str, **flags: Any) -> None:
    """Make a FIGURE of the paper: run what is missing, draw it, judge the paper's claim.

    `rllib reproduce list` names all of them. What has been run is not run again; Ctrl-C saves, and
    the same command goes on.
    """
    from rllib_conspec.cli.running import cluster

    cluster.prepare_environment(flags["verbose"])
    from rllib_conspec.cli.running import reproduce as reproducing
    from rllib_conspec.cli.running.interrupt import exit_with

    if figure == "list":
        click.echo("\n".join(reproducing.list_figures()))
        return
    request = reproducing.Request(figure, out=Path(out), **flags)
    exit_with(lambda: reproducing.reproduce(request, dry_run))


@main.group()
def example() -> None:
    """The experiments that come with the package (tuned_examples/)."""


@example.command("list")
def example_list() -> None:
    """Names, with one line about each."""
    for line in examples_module.table():
        click.echo(line)


@example.command("get")
@click.argument("name", shell_complete=examples_module.complete)
def example_get(name: str) -> None:
    """Print the file of an example."""
    click.echo(examples_module.find(name).read_text(), nl=False)


@example.command("run")
@click.argument("name", shell_complete=examples_module.complete)
@train_module.with_options
def example_run(name: str, **flags: Any) -> None:
    """Train an example; takes the flags of `rllib train`."""
    train_module.train(str(examples_module.find(name)), **flags)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script: eval "$(rllib completion bash)"."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)(main, {}, "rllib", "_RLLIB_COMPLETE")
    click.echo(script.source())


if __name__ == "__main__":
    main(prog_name="rllib")
