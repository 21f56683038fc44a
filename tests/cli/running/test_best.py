"""The end of a sweep: the best trial and the command that trains with its values."""

import shlex
from types import SimpleNamespace

import yaml

from rllib_conspec.cli.checks.experiment import Experiment, load_experiments
from rllib_conspec.cli.checks.sweep import scheduler_of, search_of, space_of
from rllib_conspec.cli.main import train as train_command
from rllib_conspec.cli.running.best import best_of, command, say_best
from rllib_conspec.cli.train import overrides_from

SWEEP = {
    "run": "ConSpec",
    "env": "rllib_conspec:MultiKeyToDoor-v0",
    "num_samples": 3,
    "stop": {"training_iteration": 4},
    "scheduler": "pbt",
    "search": {"random": {"seed": 4}},
    "metric": "env_runners/success_rate_20",
    "config": {
        "env_config": {"keys": 1},
        "lr": {"loguniform": [1e-5, 1e-2]},
        "conspec": {"intrinsic_coeff": {"choice": [0.1, 0.5]}, "num_prototypes": 4},
    },
}


def trial(number, reached, iterations=4, lr=0.1):
    result = {"training_iteration": iterations}
    if reached is not None:
        result["env_runners"] = {"success_rate_20": reached}
    config = {"lr": lr, "conspec": {"intrinsic_coeff": 0.5, "num_prototypes": 4}}
    return SimpleNamespace(
        experiment_tag=f"{number}_lr={lr}@perturbed[lr=3]",
        evaluated_params={"lr": lr},
        last_result=result,
        config=config,
    )


def test_the_best_is_the_best_at_the_end_or_the_faster_one():
    trials = [
        trial(0, 0.5),
        trial(1, None),
        trial(2, float("nan")),
        trial(3, 0.5, 3),
        trial(4, 0.1),
    ]
    assert best_of(trials, "env_runners/success_rate_20", "max") is trials[3]
    assert best_of(trials, "env_runners/success_rate_20", "min") is trials[4]
    assert best_of(trials[1:3], "env_runners/success_rate_20", "max") is None
    equal = [trial(0, 0.5), trial(1, 0.5)]
    assert best_of(equal, "env_runners/success_rate_20", "max") is equal[0]


def test_the_command_trains_once_with_these_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"s": SWEEP}, sort_keys=False))
    (experiment,) = load_experiments("s.yaml", {"config": {"gamma": 0.9}})
    lines = []
    trials = [trial(0, 0.25), trial(1, 0.75, lr=0.00123456)]
    say_best(experiment, "s.yaml", trials, lines.append)
    assert lines[:3] == [
        "Best of 2 trials: trial_1_lr=0.001235, "
        "env_runners/success_rate_20 0.75 after 4 iterations",
        "  lr  0.001235",
        "  conspec.intrinsic_coeff  0.5",
    ]
    words = shlex.split(lines[3])
    assert words[:3] == ["train", "rllib", "train"]
    with train_command.make_context("train", words[3:]) as context:
        flags = {k: v for k, v in context.params.items() if k != "words"}
    (again,) = load_experiments(flags.pop("file"), overrides_from(flags))
    assert again.name == "s_best" and again.num_samples == 1
    assert again.config == {
        "env_config": {"keys": 1},
        "lr": 0.001235,
        "conspec": {"intrinsic_coeff": 0.5, "num_prototypes": 4},
        "gamma": 0.9,
    }
    assert space_of(again) == {} and again.stop == SWEEP["stop"]
    assert type(scheduler_of(again)).__name__ == "Fifo"
    assert type(search_of(again)).__name__ == "Random"


def test_runs_that_are_no_sweep_say_nothing():
    for experiment, trials in (
        (Experiment("x", config={"lr": 0.1}), [trial(0, 0.5), trial(1, 0.5)]),
        (Experiment("x", config={"lr": {"choice": [1]}}), [trial(0, 0.5)]),
        (Experiment("x", config={"lr": {"choice": [1]}}), [trial(0, None), trial(1, None)]),
        (Experiment("x", config={"seed": {"grid_search": [0, 1]}}), [trial(0, 0.5), trial(1, 0.5)]),
    ):
        experiment.metric = "env_runners/success_rate_20"
        say_best(experiment, None, trials, [].remove)


def test_flags_that_were_given_are_given_again():
    given = {"run": "PPO", "env": "CartPole-v1", "stop": {"training_iteration": 3}}
    experiment = Experiment("x", num_samples=2, overrides=given | {"num_samples": 2})
    assert command(experiment, None, {("lr",): 0.1}) == (
        "rllib train --run PPO --env CartPole-v1 --stop '{\"training_iteration\": 3}' "
        "--config '{\"lr\": 0.1}' --experiment-name x_best --num-samples 1"
    )
