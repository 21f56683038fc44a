"""How a sweep is run: which trials are ended early, and where the values of the next come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rllib_conspec.annotations import show
from rllib_conspec.cli.checks.experiment import Experiment, deep_merge
from rllib_conspec.cli.checks.space import grid_size, is_drawn, is_grid, nested, varied
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.options import Options, option

ITERATIONS = "training_iteration"
TIMES = (ITERATIONS, "num_env_steps_sampled_lifetime", "time_total_s")
TIME_HELP = "what the numbers here are counted in"


@dataclass(frozen=True)
class Fifo(Options):
    """Every trial runs to its end."""


@dataclass(frozen=True)
class Asha(Options):
    """At growing times the trials that are not among the best so far end."""

    max_t: int | None = option(None, "a trial ends here; by default where `stop` says", min=1)
    grace_period: int = option(1, "no trial ends before, and the first comparison", min=1)
    reduction_factor: float = option(4.0, "one of so many goes on", above=1.0)
    time_attr: str = option(ITERATIONS, TIME_HELP, choices=TIMES)


@dataclass(frozen=True)
class Pbt(Options):
    """The worst go on with the weights of the best, and with values near theirs."""

    perturbation_interval: float = option(10.0, "time between comparisons", above=0.0)
    burn_in_period: float = option(0.0, "no comparison before", min=0.0)
    quantile_fraction: float = option(0.25, "share of the worst, and of the best", above=0, max=0.5)
    resample_probability: float = option(
        0.25,
        "how often a value is drawn anew, not multiplied by 0.8 or 1.2",
        min=0.0,
        max=1.0,
    )
    time_attr: str = option(ITERATIONS, TIME_HELP, choices=TIMES)


@dataclass(frozen=True)
class MedianStopping(Options):
    """A trial ends whose best is below the median of what the others had on average by then."""

    grace_period: float = option(1.0, "no trial ends before", min=0.0)
    min_samples_required: int = option(3, "other trials that a median is taken of", min=1)
    time_attr: str = option(ITERATIONS, TIME_HELP, choices=TIMES)


@dataclass(frozen=True)
class Random(Options):
    """Values are drawn independently of each other."""

    seed: int | None = option(None, "of the draw; by default the experiment's", min=0)


@dataclass(frozen=True)
class Optuna(Options):
    """Values are drawn where earlier trials did well (TPE)."""

    seed: int | None = option(None, "of the draw; by default the experiment's", min=0)
    startup_trials: int = option(4, "trials whose values are drawn independently first", min=1)


SCHEDULERS: dict[str, type[Options]] = {
    "fifo": Fifo,
    "asha": Asha,
    "pbt": Pbt,
    "median_stopping": MedianStopping,
}
SEARCHES: dict[str, type[Options]] = {"random": Random, "optuna": Optuna}


def scheduler_of(experiment: Experiment) -> Options:
    """What `scheduler` says, checked."""
    found = _read("scheduler", experiment.scheduler, SCHEDULERS)
    if not isinstance(found, Asha):
        return found
    if found.max_t is None:
        end = experiment.stop.get(found.time_attr)
        if end is None:
            raise OptionError(
                "scheduler.asha.max_t", f"missing. Give it, or {found.time_attr} in stop."
            )
        found = replace(found, max_t=int(end))
    if found.grace_period > found.max_t:
        raise OptionError(
            "scheduler.asha.grace_period",
            f"is {found.grace_period}, but a trial ends at {found.max_t}.",
        )
    return found


def search_of(experiment: Experiment) -> Options:
    """What `search` says, checked. Its seed is the experiment's where it has none of its own."""
    found = _read("search", experiment.search, SEARCHES)
    seed = experiment.config.get("seed", getattr(experiment.algorithm_config, "seed", None))
    if found.seed is None and isinstance(seed, int):
        found = replace(found, seed=seed)
    return found


def sampled_in(algorithm_config: Any) -> dict[str, Any]:
    """Those settings of a Python file's configuration in which something differs between trials."""
    if algorithm_config is None:
        return {}
    given = algorithm_config.to_dict()
    given["model_config"] = given.pop("_model_config", None)
    return {key: value for key, value in given.items() if varied({key: value})}


def space_of(experiment: Experiment) -> dict[tuple[str, ...], Any]:
    """Path in `config` → sampler or grid, of all that differs between the trials."""
    return varied(deep_merge(sampled_in(experiment.algorithm_config), experiment.config))


def trials_of(experiment: Experiment) -> int:
    """How many there are to be."""
    return experiment.num_samples * grid_size(nested(space_of(experiment)))


def check_sweep(experiment: Experiment) -> None:
    """What has to come together: a search needs something to search, PBT a population."""
    scheduler, search = scheduler_of(experiment), search_of(experiment)
    space = space_of(experiment)
    some_drawn = any(is_drawn(value) for value in space.values())
    if isinstance(search, Optuna):
        grids = [".".join(path) for path, value in space.items() if is_grid(value)]
        if grids:
            raise OptionError(
                f"config.{grids[0]}", "optuna draws values; write choice instead of grid_search."
            )
        if isinstance(scheduler, Pbt):
            raise OptionError("search", "pbt changes values by itself; leave optuna out.")
    for found, key, name in ((search, "search", "optuna"), (scheduler, "scheduler", "pbt")):
        if not isinstance(found, (Optuna, Pbt)):
            continue
        if not some_drawn:
            raise OptionError(
                key, f"{name} needs values to draw, such as lr: {{loguniform: [1.0e-4, 1.0e-2]}}."
            )
        if trials_of(experiment) < 2:
            raise OptionError("num_samples", f"{name} needs 2 trials or more.")


def check_same_sizes(experiment: Experiment, sizes: list[Mapping[str, Any]]) -> None:
    """PBT copies weights from trial to trial: options that their shapes depend on must be equal."""
    if not isinstance(scheduler_of(experiment), Pbt):
        return
    for key, size in sizes[0].items():
        for other in sizes[1:]:
            if other.get(key, size) != size:
                raise OptionError(
                    f"config.{key}",
                    f"is {show(size)} and {show(other[key])}, but pbt copies networks between "
                    "trials: their sizes must be equal.",
                )


def _read(key: str, given: Any, known: Mapping[str, type[Options]]) -> Options:
    """Options from `name` or `{name: {…}}`."""
    if isinstance(given, str):
        given = {given: {}}
    if len(given) != 1:
        raise OptionError(key, f"expected one of {', '.join(known)}, got {show(given)}.")
    ((name, options),) = given.items()
    if name not in known:
        raise OptionError(
            key, f"must be one of {', '.join(known)}, not {show(name)}.{did_you_mean(name, known)}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(f"{key}.{name}", f"expected a mapping, got {show(options)}.")
    try:
        return known[name].from_dict(options or {})
    except OptionError as error:
        raise error.within(f"{key}.{name}") from error
