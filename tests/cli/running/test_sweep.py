"""Schedulers and searches that are made from a file."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune
from ray.tune.schedulers import MedianStoppingRule, PopulationBasedTraining
from ray.tune.schedulers.async_hyperband import AsyncHyperBandScheduler
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter

from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running.sweep import (
    make_scheduler,
    make_search,
    staying_inside,
    where_measured,
)

METRIC = "env_runners/success_rate_20"
SPACE = {"lr": {"loguniform": [1e-4, 1e-2]}, "m": {"n": {"choice": [1, 2, 4]}}}


def experiment(**settings):
    given = {"config": SPACE | {"seed": 3}, "num_samples": 4, "metric": METRIC}
    return Experiment(
        "x", run="ConSpec", env="e", stop={"training_iteration": 9}, **given | settings
    )


def prepared(**settings):
    """The scheduler as Tune's controller uses it."""
    scheduler = make_scheduler(experiment(**settings))
    scheduler.set_search_properties(METRIC, "max")
    return scheduler


def test_schedulers_have_the_values_of_the_file():
    asha = prepared(scheduler={"asha": {"grace_period": 2, "reduction_factor": 3}})
    assert isinstance(asha, AsyncHyperBandScheduler)
    assert [milestone for milestone, _ in asha._brackets[0]._rungs] == [6, 2] and asha._max_t == 9
    pbt = prepared(scheduler={"pbt": {"perturbation_interval": 5}})
    assert isinstance(pbt, PopulationBasedTraining)
    assert (pbt._perturbation_interval, pbt._time_attr) == (5, "training_iteration")
    assert isinstance(prepared(scheduler={"median_stopping": {}}), MedianStoppingRule)


@given(st.integers(0, 10_000))
def test_pbt_never_leaves_what_was_checked(seed):
    import random

    random.seed(seed)
    pbt = prepared(scheduler="pbt")
    trial = SimpleNamespace(config={"lr": 9e-3, "m": {"n": 4}, "seed": 3})
    for _ in range(5):
        trial.config, _ = pbt._get_new_config(None, trial)
        assert 1e-4 <= trial.config["lr"] <= 1e-2
        assert trial.config["m"]["n"] in (1, 2, 4)
    assert trial.config["seed"] == 3


def test_choices_are_left_as_they_are():
    inside = staying_inside({("a",): {"choice": [1, 5]}, ("b",): tune.uniform(0, 1)})
    assert inside({"a": 5, "b": 1.2}) == {"a": 5, "b": 1.0}


@pytest.mark.parametrize("name", ["asha", "pbt", "median_stopping"])
def test_results_before_the_first_episode_ended_are_not_compared(name):
    scheduler = prepared(scheduler=name)
    trial = SimpleNamespace(trial_id="a")
    for missing in ({}, {METRIC: math.nan}):
        result = {"training_iteration": 1, **missing}
        assert scheduler.on_trial_result(None, trial, result) == scheduler.CONTINUE


def test_a_measured_result_reaches_the_scheduler_as_it_is():
    seen = []
    scheduler = SimpleNamespace(on_trial_result=lambda *given: seen.append(given[-1]) or "STOP")
    assert where_measured(scheduler, "m").on_trial_result(None, None, {"m": 0.5, "n": 1}) == "STOP"
    where_measured(scheduler, "m").on_trial_result(None, None, {"m": math.nan, "n": 1})
    assert seen == [{"m": 0.5, "n": 1}, {"n": 1}]


def test_the_same_seed_draws_the_same_values():
    def drawn(seed):
        search = make_search(experiment(search={"random": {"seed": seed}}))
        assert isinstance(search, BasicVariantGenerator)
        return search._random_state.uniform(size=3).tolist()

    assert drawn(1) == drawn(1) != drawn(2)
    assert make_search(experiment(max_concurrent=2)).max_concurrent == 2
    limited = make_search(experiment(search="optuna", max_concurrent=2))
    assert isinstance(limited, ConcurrencyLimiter) and limited.max_concurrent == 2
