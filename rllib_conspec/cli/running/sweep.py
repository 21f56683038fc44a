"""Schedulers and searches of Tune, made from what an experiment says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ray.tune.schedulers import (
    ASHAScheduler,
    FIFOScheduler,
    MedianStoppingRule,
    PopulationBasedTraining,
    TrialScheduler,
)
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter

from rllib_conspec.annotations import fits
from rllib_conspec.cli.checks import sweep
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.checks.space import CHOICE, at, for_tune, is_drawn, nested, possible

Path = tuple[str, ...]


def make_scheduler(experiment: Experiment) -> TrialScheduler:
    options = sweep.scheduler_of(experiment)
    values = options.to_dict()
    if isinstance(options, sweep.Pbt):
        space = {p: v for p, v in sweep.space_of(experiment).items() if is_drawn(v)}
        made = PopulationBasedTraining(
            # The neighbours of a choice are those beside it in its list; a Tune sampler has none.
            hyperparam_mutations=nested({p: _mutations(v) for p, v in space.items()}),
            custom_explore_fn=staying_inside(space),
            require_attrs=False,
            log_config=False,
            **values,
        )
    elif isinstance(options, sweep.Asha):
        made = ASHAScheduler(**values)
    elif isinstance(options, sweep.MedianStopping):
        # Until there are enough to compare with, Tune's would let trials take turns: each turn ends
        # a process and starts another.
        made = MedianStoppingRule(min_time_slice=math.inf, **values)
    else:
        made = FIFOScheduler()
    return where_measured(made, experiment.metric)


def make_search(experiment: Experiment) -> Any:
    """What gives a trial its values."""
    options = sweep.search_of(experiment)
    if isinstance(options, sweep.Random):
        return BasicVariantGenerator(
            max_concurrent=experiment.max_concurrent or 0, random_state=options.seed
        )
    from rllib_conspec.cli.running.optuna_search import make

    search = make(options)
    if experiment.max_concurrent is None:
        return search
    return ConcurrencyLimiter(search, max_concurrent=experiment.max_concurrent)


def staying_inside(space: Mapping[Path, Any]) -> Callable[[dict], dict]:
    """PBT multiplies values; this brings those back that have left their ranges."""

    def explore(config: dict[str, Any]) -> dict[str, Any]:
        for path, sampler in space.items():
            ends, value = possible("", sampler), at(config, path)
            if not _is_choice(sampler) and fits(float, value):
                at(config, path[:-1])[path[-1]] = min(max(value, min(ends)), max(ends))
        return config

    return explore


def where_measured(scheduler: TrialScheduler, metric: str) -> TrialScheduler:
    """Keep results without the metric, as there are before an episode has ended, from being
    compared: to some schedulers of Tune one that is nan is worse than all others.
    """
    on_trial_result = scheduler.on_trial_result

    def measured_or_go_on(controller: Any, trial: Any, result: dict[str, Any]) -> str:
        value = result.get(metric)
        if value is None or math.isnan(value):
            result = {key: value for key, value in result.items() if key != metric}
        return on_trial_result(controller, trial, result)

    scheduler.on_trial_result = measured_or_go_on
    return scheduler


def _mutations(sampler: Any) -> Any:
    return possible("", sampler) if _is_choice(sampler) else for_tune(sampler)


def _is_choice(sampler: Any) -> bool:
    return hasattr(sampler, "categories") or (isinstance(sampler, Mapping) and CHOICE in sampler)
