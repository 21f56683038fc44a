"""`rllib reproduce`: run what a figure of the paper still lacks, then draw it and judge its claim.

Each system of a figure is one experiment with a grid of seeds, run by what `rllib train` runs with.
Beside each directory of trials a JSON file keeps its settings and seeds, so that results of other
settings are never mixed in.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from rllib_conspec.cli import examples
from rllib_conspec.cli.checks.experiment import Experiment, load_experiments
from rllib_conspec.cli.running import cluster
from rllib_conspec.cli.running.found import short
from rllib_conspec.errors import UserError
from rllib_conspec.reproduce import outcomes as known_outcomes
from rllib_conspec.reproduce.expectations import Outcome
from rllib_conspec.reproduce.figure import SMALL, Figure, Line, Run, find
from rllib_conspec.reproduce.page import Account, findings, page
from rllib_conspec.reproduce.table import FIGURES

DEFAULT_OUT, DEFAULT_SEEDS = "results/reproduce", 3


@dataclass(frozen=True)
class Request:
    """The flags."""

    name: str
    scale: str = SMALL
    seeds: int = DEFAULT_SEEDS
    known: bool = False
    out: Path = Path(DEFAULT_OUT)
    ray_address: str | None = None
    ray_num_cpus: int | None = None
    verbose: int = 0

    @property
    def storage(self) -> Path:
        return self.out.expanduser().absolute() / "runs" / self.scale

    @property
    def command(self) -> str:
        words = ["rllib", "reproduce", self.name, "--scale", self.scale, "--seeds", str(self.seeds)]
        words += ["--known"] * self.known
        words += ["-o", str(self.out)] * (self.out != Path(DEFAULT_OUT))
        words += ["--ray-address", self.ray_address] if self.ray_address else []
        words += ["--ray-num-cpus", str(self.ray_num_cpus)] if self.ray_num_cpus else []
        return shlex.join(words)


@dataclass
class Need:
    """What one run of a figure has and lacks."""

    run: Run
    have: dict[int, Outcome]  # by seed, ended or not
    kept: list[Path] = field(default_factory=list)  # files that some of these are from
    resume: list[int] = field(default_factory=list)  # seeds of an earlier start that has not ended
    fresh: list[int] = field(default_factory=list)  # seeds that were never started


def reproduce(request: Request, dry_run: bool) -> int:
    """Run, draw and judge one figure; returns the exit code."""
    figure = find(request.name, FIGURES)
    lines, missing = _there(figure, request.scale)
    _check_writable(request.out)
    needs = [_need(run, figure, request) for run in _runs(lines)]
    if dry_run:
        for need in needs:
            for line in _commands(need, request) or [f"# {need.run.name}: nothing to run"]:
                click.echo(line)
        return 0
    code = _run(needs, request) if any(need.resume or need.fresh for need in needs) else 0
    for written in _write(figure, lines, missing, request):
        click.echo(written)
    return code


def _there(figure: Figure, scale: str) -> tuple[list[Line], tuple[str, ...]]:
    """Lines whose example is there, and the names of systems whose is not."""
    lines = figure.lines(scale)
    here = [line for line in lines if line.run.example in examples.names()]
    missing = tuple(dict.fromkeys(line.label for line in lines if line not in here))
    if not here:
        raise UserError(f"reproduce {figure.name}: not there yet: {', '.join(missing)}.")
    return here, missing


def _runs(lines: list[Line]) -> list[Run]:
    return list({line.run.name: line.run for line in lines}.values())


def _check_writable(out: Path) -> None:
    from rllib_conspec.cli.checks.validate import check_storage
    from rllib_conspec.errors import OptionError

    try:
        check_storage(str(out))
    except OptionError as error:
        raise UserError(f"reproduce: -o: {error.message}") from error


def _have(run: Run, figure: Figure, request: Request) -> tuple[dict[int, Outcome], list[Path]]:
    kept = known_outcomes.from_kept(run, request.scale, figure) if request.known else {}
    files = known_outcomes.kept_files(run, request.scale) if kept else []
    trained = known_outcomes.from_trials(request.storage, run, figure)
    wanted = {seed: outcome for seed, outcome in trained.items() if seed < request.seeds}
    return {**wanted, **kept}, files


def _need(run: Run, figure: Figure, request: Request) -> Need:
    have, kept = _have(run, figure, request)
    need = Need(run, have, kept)
    ended = {seed for seed, outcome in have.items() if outcome.ended}
    # Kept curves may be of other seeds: as many as asked for are enough.
    still = max(0, request.seeds - len(ended))
    lacking = [seed for seed in range(request.seeds) if seed not in ended][:still]
    if not lacking:
        return need
    _check_settings(run, request)
    if started := _unfinished(run, request.storage):
        need.resume = started
    need.fresh = [seed for seed in lacking if seed not in need.resume]
    return need


def _unfinished(run: Run, storage: Path) -> list[int]:
    """Seeds of the latest start, if some of its trials can be taken up again."""
    if not known_outcomes.directories(storage, run):
        return []
    from rllib_conspec.cli.running import directories

    earlier = directories.latest(storage, run.name)
    if earlier is None or earlier.finished:
        return []
    return _noted(earlier.path)["seeds"]


def _experiment(run: Run, seeds: list[int], request: Request) -> Experiment:
    overrides: dict[str, Any] = {
        "name": run.name,
        "config": {**run.config, "seed": {"grid_search": seeds}},
        "storage_path": str(request.storage),
    }
    if run.stop:
        overrides["stop"] = dict(run.stop)
    (experiment,) = load_experiments(str(examples.find(run.example)), overrides)
    # Given on a command line, a criterion would make finished trials go on.
    experiment.overrides.pop("stop", None)
    return experiment


def _settings(run: Run, request: Request) -> dict[str, Any]:
    experiment = _experiment(run, [0], request)
    config = {key: value for key, value in experiment.config.items() if key != "seed"}
    found = {
        "run": experiment.run,
        "env": experiment.env,
        "stop": experiment.stop,
        "config": config,
    }
    return json.loads(json.dumps(found, default=str))


def _note(directory: Path) -> Path:
    return directory.with_name(directory.name + ".json")


def _noted(directory: Path) -> dict[str, Any]:
    file = _note(directory)
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{short(directory)}: not made by rllib reproduce ({file.name} beside it cannot be "
            "read). Remove it, or choose another directory with -o."
        ) from error


def _check_settings(run: Run, request: Request) -> None:
    now = _settings(run, request)
    for directory in known_outcomes.directories(request.storage, run):
        before = _noted(directory)
        if changed := [key for key in now if now[key] != before.get(key)]:
            raise UserError(
                f"{short(directory)}: was run with other settings ({', '.join(changed)} of "
                f"{run.example}). Remove it, or choose another directory with -o."
            )


def _commands(need: Need, request: Request) -> list[str]:
    """What is run, as commands that do the same."""
    run, found = need.run, []
    words = ["rllib", "train", "-f", short(examples.find(run.example))]
    words += ["--experiment-name", run.name, "--storage-path", short(request.storage)]
    more = ["--ray-address", request.ray_address] if request.ray_address else []
    if need.resume:
        found.append(shlex.join([*words, *more, "--resume"]))
    if need.fresh:
        config = {**run.config, "seed": {"grid_search": need.fresh}}
        words += ["--config", json.dumps(config)]
        words += ["--stop", json.dumps(run.stop)] if run.stop else []
        found.append(shlex.join([*words, *more]))
        if run.first and not Path(run.first[0]).exists():
            found.insert(0, run.first[1])
    return found


def _run(needs: list[Need], request: Request) -> int:
    for need in needs:
        if need.fresh and need.run.first and not Path(need.run.first[0]).exists():
            file, command = need.run.first
            raise UserError(f"reproduce {request.name}: needs {file}. First: {command}")
    experiments = [
        (_experiment(need.run, seeds, request), resume)
        for need in needs
        for seeds, resume in ((need.resume, True), (need.fresh, False))
        if seeds
    ]
    from rich.console import Console

    names = ", ".join(dict.fromkeys(experiment.name for experiment, _ in experiments))
    click.echo(f"Checking {names}, then starting Ray …")

    from rllib_conspec.cli.checks.validate import validate
    from rllib_conspec.cli.running import run as running

    cluster.quiet_loggers(request.verbose)
    here = not request.ray_address
    plans = []
    for experiment, resume in experiments:
        (planned,) = running.plan([(experiment, validate(experiment, here=here))], resume=resume)
        plans.append(planned)
        if not resume:
            _write_note(planned.storage / planned.directory, experiment, needs, request)
    options = running.RunOptions(
        ray_address=request.ray_address,
        ray_num_cpus=request.ray_num_cpus,
        verbose=request.verbose,
        again=request.command,
    )
    return running.run(plans, options, Console())


def _write_note(
    directory: Path, experiment: Experiment, needs: list[Need], request: Request
) -> None:
    (need,) = (need for need in needs if need.run.name == experiment.name)
    directory.parent.mkdir(parents=True, exist_ok=True)
    noted = {**_settings(need.run, request), "seeds": need.fresh}
    _note(directory).write_text(json.dumps(noted, indent=1) + "\n")


def _write(
    figure: Figure, lines: list[Line], missing: tuple[str, ...], request: Request
) -> list[str]:
    """Picture, page and curves; lines that say where they are and what came out."""
    from rllib_conspec.reproduce.picture import draw

    outcomes, files = {}, {}
    for line in lines:
        have, kept = _have(line.run, figure, request)
        outcomes[line.key] = [have[seed] for seed in sorted(have)]
        files |= dict.fromkeys(f"docs/results/{f.relative_to(known_outcomes.KEPT)}" for f in kept)
        for seed, outcome in have.items():
            if outcome.ended and seed not in map(known_outcomes.seed_of, kept):
                file = request.out / "curves" / request.scale / f"{line.run.name}_{seed}.csv"
                known_outcomes.write_csv(outcome, file, figure.metric)
    name = f"{figure.name}_{request.scale}"
    request.out.mkdir(parents=True, exist_ok=True)
    picture = draw(figure, lines, outcomes, request.out / f"{name}.png")
    account = Account(request.scale, request.command, picture.name, tuple(files), missing)
    text = request.out / f"{name}.md"
    text.write_text(page(figure, lines, outcomes, account))
    found = findings(figure, request.scale, outcomes)
    return [
        f"{figure.where}: {figure.title}",
        *(f"  {finding.verdict}: {finding.text}" for finding in found),
        f"{short(picture.absolute())}, {short(text.absolute())}",
    ]


def list_figures() -> list[str]:
    """Every figure with what it needs, what is known of it and how long it takes."""
    here = examples.names()
    found = []
    for figure in FIGURES.values():
        found.append(f"{figure.name}  {figure.where}: {figure.title}")
        if not figure.scales:
            found.append(f"    {figure.elsewhere or 'not there yet: ' + ', '.join(figure.lacks)}")
        for scale, lines in figure.scales.items():
            found.append(f"    {scale:<5}  {_state(figure, scale, lines, here)}")
    return found


def _state(figure: Figure, scale: str, lines: tuple[Line, ...], here: dict[str, Path]) -> str:
    there = [line for line in lines if line.run.example in here]
    missing = dict.fromkeys(line.label for line in lines if line not in there)
    if not there:
        return f"not there yet: {', '.join(missing)}"
    runs = _runs(there)
    parts = [f"{len(runs)} systems" if len(runs) > 1 else "1 system", _time(runs)]
    if missing:
        parts.append(f"not there yet: {', '.join(missing)}")
    if first := [run.first[0] for run in runs if run.first]:
        parts.append(f"needs {', '.join(dict.fromkeys(first))} (--dry-run shows how)")
    known = sum(len(known_outcomes.kept_files(run, scale)) for run in runs)
    if known:
        parts.append(f"known: {known} runs")
    return "; ".join(parts)


def _time(runs: list[Run]) -> str:
    minutes = [run.minutes for run in runs]
    if None in minutes:
        return "time not known"
    hours = sum(minutes) * DEFAULT_SEEDS / 2 / 60
    amount = f"{hours:.0f} h" if hours >= 3 else f"{60 * hours:.0f} min"
    return f"about {amount} for {DEFAULT_SEEDS} seeds on two cores"
