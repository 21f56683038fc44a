import io

import pytest
from rich.console import Console

from rllib_conspec.cli.running.progress import Progress, TrialProgress, duration, metric, plain_line
from rllib_conspec.reward_models.base import RewardModel


class Finder(RewardModel):
    """Says itself what to show."""

    @classmethod
    def cells(cls, metrics):
        return {"found": f"{metrics['found']}/{metrics['of']}"}


class Surprise(RewardModel):
    metrics_shown = ("error",)


MODELS = (Finder, Surprise)


def result(iteration):
    found = {
        "training_iteration": iteration,
        "time_total_s": 2.0 * iteration,
        "time_this_iter_s": 2.0,
        "num_env_steps_sampled_lifetime": 1000 * iteration,
        "env_runners": {
            "episode_return_mean": 0.25,
            "success_rate": 0.25,
            "num_env_steps_sampled": 1000,
        },
    }
    return found | {"finder": {"found": 3, "of": 8}, "surprise": {"error": 0.5, "other": 1}}


def test_a_line_shows_what_there_is():
    trial = TrialProgress("keys1", {"training_iteration": 100}, MODELS)
    trial.update(result(10))
    assert plain_line(trial) == (
        "keys1  iteration 10/100  return 0.25  success 25%  found 3/8  error 0.5  "
        "steps/s 500  left 3 min"
    )
    without = TrialProgress("keys1", {})
    without.update(result(10))
    assert "found" not in plain_line(without)
    other = TrialProgress("cart", {}, MODELS)
    other.update({"training_iteration": 1, "env_runners": {"episode_return_mean": float("nan")}})
    assert plain_line(other) == "cart  iteration 1"


def test_speed_is_that_of_the_recent_iterations():
    trial = TrialProgress("x", {"training_iteration": 100})
    for iteration in range(1, 51):
        trial.update(result(iteration))
    assert trial.steps_per_second() == pytest.approx(500)
    slow = result(51) | {"time_total_s": 100 + 182.0}
    trial.update(slow)
    assert trial.steps_per_second() == pytest.approx(10_000 / 200)


def test_time_left_is_that_of_the_first_criterion():
    trial = TrialProgress("x", {"training_iteration": 1000, "time_total_s": 30})
    trial.update(result(10))
    assert trial.seconds_left() == pytest.approx(10)
    steps = TrialProgress("x", {"num_env_steps_sampled_lifetime": 12_000})
    steps.update(result(10))
    assert steps.seconds_left() == pytest.approx(4)
    restored = TrialProgress("x", {"iterations_since_restore": 60, "time_since_restore": 1000})
    restored.update(result(110) | {"iterations_since_restore": 10, "time_since_restore": 20.0})
    assert restored.cells()["left"] == "2 min"
    assert TrialProgress("x", {}).seconds_left() is None


def test_goals_are_said_beside_the_time_left():
    goal = {"env_runners/success_rate_20": 0.93}
    trial = TrialProgress("x", {"training_iteration": 100, **goal})
    trial.update(result(10))
    assert trial.cells()["left"] == "3 min or until success_rate_20 0.93"
    only = TrialProgress("x", goal)
    only.update(result(10))
    assert only.cells()["left"] == "until success_rate_20 0.93"


def test_incidents_are_lines_of_their_own_whenever_they_happen():
    console = Console(file=io.StringIO(), width=120)
    with Progress(console, "title") as progress:
        progress.started("1", "a", {})
        for iteration in (1, 2):
            progress.result("1", result(iteration) | {"incidents": ("worker 2 died.",)})
        progress.result("1", result(3) | {"incidents": ()})
    assert console.file.getvalue().splitlines().count("worker 2 died.") == 2


def test_a_pipe_gets_lines_and_a_terminal_a_table():
    for terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
        with Progress(console, "title") as progress:
            progress.started("1", "trial_0", {"training_iteration": 100}, MODELS)
            progress.result("1", result(1))
            progress.result("1", result(2))
            progress.ended("1", "finished")
        text = console.file.getvalue()
        assert "2/100" in text and "3/8" in text
        assert ("finished" in text) is terminal
        assert (len(text.splitlines()) == 2) is not terminal


def test_columns_of_models_stand_between_success_and_speed():
    progress = Progress(Console(file=io.StringIO()), "title")
    progress.started("1", "trial_0", {"training_iteration": 100}, MODELS)
    assert [column.header for column in progress.table().columns] == ["trial", ""]
    progress.started("2", "trial_1", {}, (Surprise,))
    progress.result("2", result(1))
    progress.result("1", result(1))
    headers = [column.header for column in progress.table().columns]
    assert headers == [
        *("trial", "", "iteration", "return", "success"),
        *("found", "error", "steps/s", "left"),
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_each_hint_is_given_once_per_trial(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with Progress(console, "title") as progress:
        progress.started("1", "a", {})
        progress.result("1", result(1) | {"hints": ["finder: no success yet"]})
        progress.result("1", result(2) | {"hints": ["finder: no success yet", "other: slow"]})
        assert console.file.getvalue().count("hint: finder: no success yet") == 1
        progress.started("2", "b", {})
        progress.result("2", result(1) | {"hints": ["finder: no success yet"]})
        progress.result("2", result(2))
    text = console.file.getvalue()
    assert [text.count(f"hint: {line}") for line in ("other: slow", "b: finder: no success")] == [
        1,
        1,
    ]


def test_metrics_that_are_missing_or_no_number_are_none():
    nested = {"a": {"b": 1, "c": float("nan"), "d": "text", "e": True}}
    assert metric(nested, "a/b") == 1.0
    assert [metric(nested, path) for path in ("a/c", "a/d", "a/e", "a/x", "x/y")] == [None] * 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 s"), (600, "10 min"), (11_100, "3 h 05 min"), (190_000, "2 d 4 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
