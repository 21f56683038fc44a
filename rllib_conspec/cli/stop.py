"""Check the criteria that end a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_conspec.cli.schema import fits, show
from rllib_conspec.errors import OptionError, did_you_mean

# Keys of a result by which a run can be stopped. Below these sections any metric may appear.
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
    "conspec/frozen",
    "conspec/successes",
)
STOP_SECTIONS = ("env_runners", "evaluation", "learners", "conspec", "seconds", "timers", "perf")
_OLD_STOP_KEYS = {
    "episode_reward_mean": "env_runners/episode_return_mean",
    "episode_return_mean": "env_runners/episode_return_mean",
    "success_rate": "env_runners/success_rate",
    "timesteps_total": "num_env_steps_sampled_lifetime",
}


def check_stop(stop: Mapping[str, Any]) -> None:
    for key, value in stop.items():
        name = f"stop.{key}"
        if key in _OLD_STOP_KEYS:
            raise OptionError(name, f'unknown metric. Did you mean "{_OLD_STOP_KEYS[key]}"?')
        section, slash, _ = str(key).partition("/")
        # Algorithms may report metrics of their own, so only a near miss is a mistake there.
        own = slash and section in STOP_SECTIONS
        hint = did_you_mean(key, STOP_KEYS, cutoff=0.9 if own else 0.6)
        if key not in STOP_KEYS and (hint or not own):
            raise OptionError(name, f"unknown metric.{hint}")
        if not fits(float, value):
            raise OptionError(name, f"expected a number, got {show(value)}.")
        if key in ("training_iteration", "time_total_s") and value <= 0:
            raise OptionError(name, f"must be more than 0, got {show(value)}.")
