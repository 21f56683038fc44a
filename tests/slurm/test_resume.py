"""How a run that was submitted is begun and resumed: the two commands that its client stores."""

import click
import pytest

from rllib_conspec.cli import train as train_module
from rllib_conspec.cli.running import slurm as slurm_cli


def parsed(words):
    """(file, flags) of a command line of `rllib train`."""
    command = train_module.with_options(click.command()(lambda **_: None))
    command.params.append(click.Option(["-f", "--file", "file"]))
    flags = command.make_context("train", list(words)).params
    return flags.pop("file"), flags


@pytest.mark.parametrize(
    ("given", "resumed"),
    [
        (["-f", "a.yaml", "--checkpoint-freq", "5"], ["-f", "a.yaml", "--checkpoint-freq", "5"]),
        (["--config", "{lr: 1}", "-f", "a.yaml", "--stop={x: 1}"], ["-f", "a.yaml"]),
        (["-f", "a.yaml", "--restore", "c", "--num-samples", "2", "-v"], ["-f", "a.yaml", "-v"]),
        (["-f", "a.yaml", "--resume"], ["-f", "a.yaml"]),
    ],
)
def test_a_resumed_run_keeps_the_settings_it_began_with(given, resumed):
    file, flags = parsed(given)
    words = slurm_cli.arguments_from(file, slurm_cli.resume_flags(flags))
    assert sorted(words) == sorted([*resumed, "--resume"])


def test_both_commands_are_complete(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--run", "PPO", "--env", "CartPole-v1", "--stop", "{training_iteration: 2}"]
    run = slurm_cli.describe(*parsed([*words, "--checkpoint-freq", "5"]), gpus=0, check=False)
    program = ["python", "-m", "rllib_conspec.cli.main", "train"]
    for command in (run.command, run.resume_command):
        assert command[:4] == program and command[-2:] == ["--ray-address", "auto"]
        assert command[command.index("--checkpoint-freq") + 1] == "5"
    assert "--stop" in run.command and "--config" in run.command and "--resume" not in run.command
    assert "--stop" not in run.resume_command and "--config" not in run.resume_command
    assert "--resume" in run.resume_command
    assert run.cwd == str(tmp_path)
