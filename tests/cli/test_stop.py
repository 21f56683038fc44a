"""Criteria that end a run."""

import pytest

from rllib_conspec.cli.stop import STOP_KEYS, check_stop
from rllib_conspec.errors import OptionError


@pytest.mark.parametrize("key", [*STOP_KEYS, "learners/default_policy/entropy"])
def test_known_metrics_and_those_of_algorithms_are_accepted(key):
    check_stop({key: 1})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("training_iterations", "training_iteration"),
        ("episode_reward_mean", "env_runners/episode_return_mean"),
        ("success_rate", "env_runners/success_rate"),
        ("env_runners/sucess_rate", "env_runners/success_rate"),
    ],
)
def test_a_near_miss_is_answered_with_the_metric_meant(key, hint):
    with pytest.raises(OptionError, match=f'Did you mean "{hint}') as caught:
        check_stop({key: 1})
    assert caught.value.option == f"stop.{key}"


@pytest.mark.parametrize(
    ("stop", "says"),
    [
        ({"quite_unknown": 1}, "unknown metric"),
        ({"training_iteration": "ten"}, "expected a number"),
        ({"training_iteration": 0}, "more than 0"),
        ({"time_total_s": -1}, "more than 0"),
    ],
)
def test_what_could_never_stop_a_run_is_refused(stop, says):
    with pytest.raises(OptionError, match=says):
        check_stop(stop)
