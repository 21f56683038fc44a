"""Check the criteria that end a run, and names of metrics."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from rllib_conspec.annotations import fits, show
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.reward_models import REGISTRY
from rllib_conspec.reward_models.base import RewardModel
from rllib_conspec.success import RELATIVE

# Keys of a result by which a run can be stopped. Below these sections, and below the names of the
# reward models, any metric may appear.
STOP_KEYS = (
    "training_iteration",
    "time_total_s",
    "iterations_since_restore",
    "time_since_restore",
    "num_env_steps_sampled_lifetime",
    "num_training_step_calls_per_iteration",
    "env_runners/episode_return_mean",
    "env_runners/episode_return_max",
    "env_runners/episode_return_min",
    "env_runners/episode_len_mean",
    "env_runners/num_episodes_lifetime",
    "env_runners/num_env_steps_sampled_lifetime",
    "env_runners/success_rate",
    "env_runners/success_rate_20",
    "env_runners/intrinsic_return_mean",
    "evaluation/env_runners/episode_return_mean",
)
STOP_SECTIONS = ("env_runners", "evaluation", "learners", "seconds", "timers", "perf")
_OLD_STOP_KEYS = {
    "episode_reward_mean": "env_runners/episode_return_mean",
    "episode_return_mean": "env_runners/episode_return_mean",
    "success_rate": "env_runners/success_rate",
    "timesteps_total": "num_env_steps_sampled_lifetime",
}


SUCCESS_KEYS = ("env_runners/success_rate", "env_runners/success_rate_20")


def check_stop(
    stop: Mapping[str, Any],
    models: Collection[type[RewardModel]] = (),
    success: Collection[str] = (),
) -> None:
    """`models` and `success`: of all trials of the experiment."""
    for key, value in stop.items():
        name = f"stop.{key}"
        check_metric(key, name, models, success)
        if not fits(float, value) or not math.isfinite(value):
            raise OptionError(name, f"expected a number, got {show(value)}.")
        if key in ("training_iteration", "time_total_s") and value <= 0:
            raise OptionError(name, f"must be more than 0, got {show(value)}.")


def check_metric(
    key: str,
    option: str,
    models: Collection[type[RewardModel]] = (),
    success: Collection[str] = (),
) -> None:
    """Refuse a metric that no result has; `option` is where it was given."""
    sections = (*STOP_SECTIONS, *(model.name for model in models))
    shown = (f"{model.name}/{metric}" for model in models for metric in model.metrics_shown)
    known = (*STOP_KEYS, *shown)
    if key in _OLD_STOP_KEYS:
        raise OptionError(option, f'unknown metric. Did you mean "{_OLD_STOP_KEYS[key]}"?')
    section, slash, _ = str(key).partition("/")
    # Algorithms may report metrics of their own, so only a near miss is a mistake there.
    own = slash and section in sections
    if slash and not own and section in REGISTRY.entries:
        raise OptionError(option, f"this experiment has no reward model {section}.")
    hint = did_you_mean(key, known, cutoff=0.9 if own else 0.6)
    if key not in known and (hint or not own):
        raise OptionError(option, f"unknown metric.{hint}")
    if key in SUCCESS_KEYS and RELATIVE in success:
        raise OptionError(
            option, f"with success {RELATIVE} some of every batch succeed: there is no such rate."
        )
