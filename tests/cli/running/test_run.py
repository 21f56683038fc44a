import shutil
from types import SimpleNamespace

import pytest

from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running.run import RunOptions, changed_settings, resume_command


def test_the_resume_command_names_the_same_run():
    given = {"run": "PPO", "env": "CartPole-v1", "storage_path": "my results", "config": {"lr": 1}}
    experiment = Experiment(name="PPO_CartPole-v1", overrides=given)
    assert resume_command(experiment, RunOptions()) == (
        "rllib train --run PPO --env CartPole-v1 --storage-path 'my results' --resume"
    )
    renamed = Experiment(name="b", overrides={"name": "b"})
    assert resume_command(renamed, RunOptions(file="a.yaml", ray_address="auto")) == (
        "rllib train -f a.yaml --ray-address auto --experiment-name b --resume"
    )


@pytest.fixture
def resumed(refused, sweep, tmp_path):
    """`rllib train --resume` of a copy of the finished sweep, which must be refused."""
    shutil.copytree(sweep.results / "cart", tmp_path / "results" / "cart")
    flags = ["--env", "CartPole-v1", "--experiment-name", "cart", "--resume"]
    return lambda run, *more: refused("train", "--run", run, *flags, *more)


def test_a_finished_run_is_not_resumed_unless_it_shall_go_on(resumed):
    assert resumed("PPO") == "--resume: cart has finished. Give a larger --stop to go on."


def test_a_run_of_another_algorithm_is_not_resumed(resumed):
    line = resumed("APPO", "--stop", "{training_iteration: 9}")
    assert line.endswith("results/cart: is a run of PPO, not APPO.")


def test_a_broken_checkpoint_is_not_resumed_and_the_older_one_is_named(resumed, tmp_path):
    trial = tmp_path / "results" / "cart" / "trial_0_lr=0.001"
    file = trial / "checkpoint_000002" / "learner_group" / "learner" / "state.pkl"
    file.write_bytes(file.read_bytes()[:100])
    line = resumed("PPO", "--stop", "{training_iteration: 9}")
    assert f"{trial}/checkpoint_000002: checkpoint is cut short: " in line
    assert line.endswith(f"--restore {trial}/checkpoint_000001")


def test_a_run_of_an_earlier_version_is_not_resumed(resumed, made_earlier, tmp_path):
    checkpoint = tmp_path / "results" / "cart" / "trial_0_lr=0.001" / "checkpoint_000002"
    made_earlier(checkpoint, "options")
    line = resumed("PPO", "--stop", "{training_iteration: 9}")
    assert line == (
        f"{checkpoint}: was made by an earlier version, whose checkpoints cannot be read."
    )


def test_settings_that_differ_from_the_file_are_named():
    trials = [SimpleNamespace(config={"lr": 0.1, "gamma": 0.9, "seed": 0})]
    grid = {"grid_search": [0.1, 0.2]}
    assert changed_settings(trials, {"lr": grid, "gamma": 0.9, "seed": 0}) == []
    drawn = {"uniform": [0.5, 1.0]}
    assert changed_settings(trials, {"lr": grid, "gamma": drawn, "seed": drawn}) == ["seed"]
    assert changed_settings(trials, {"lr": grid, "gamma": 0.8, "model": 1}) == [
        "gamma",
        "model",
        "seed",
    ]
