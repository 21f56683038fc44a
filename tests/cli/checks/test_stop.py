"""Criteria that end a run."""

import pytest

from rllib_conspec.cli.checks.stop import STOP_KEYS, check_stop
from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models.base import RewardModel


class Curious(RewardModel):
    metrics_shown = ("prediction_error",)


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
        ({"time_total_s": float("nan")}, "expected a number, got nan"),
        ({"training_iteration": float("inf")}, "expected a number, got inf"),
    ],
)
def test_what_could_never_stop_a_run_is_refused(stop, says):
    with pytest.raises(OptionError, match=says):
        check_stop(stop)


def test_metrics_of_the_reward_models_are_accepted_and_near_misses_noticed():
    for metric in ("prediction_error", "anything"):
        check_stop({f"curious/{metric}": 1}, [Curious])
    with pytest.raises(OptionError, match='Did you mean "curious/prediction_error"'):
        check_stop({"curious/prediction_eror": 1}, [Curious])
    with pytest.raises(OptionError, match=r"stop.curious/prediction_error: unknown metric\."):
        check_stop({"curious/prediction_error": 1})
    with pytest.raises(OptionError, match="this experiment has no reward model rnd"):
        check_stop({"rnd/anything": 1}, [Curious])


@pytest.mark.parametrize("key", ["env_runners/success_rate", "env_runners/success_rate_20"])
def test_there_is_no_success_rate_when_success_is_relative(key):
    check_stop({key: 0.9}, success=["sparse"])
    with pytest.raises(OptionError, match="with success top_k"):
        check_stop({key: 0.9}, success=["sparse", "top_k"])
