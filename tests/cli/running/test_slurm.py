"""`rllib train --slurm` as far as it goes without Slurm; the rest is in tests/slurm."""

import json
import re
import shlex
from pathlib import Path

import pytest

from rllib_conspec.cli import train as train_module
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running import slurm

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "cluster" / "slurm.yaml"
CPU_CLUSTER = ROOT / "cluster" / "slurm_cpu.yaml"
CART = ("--run", "PPO", "--env", "CartPole-v1", "--stop", '{"training_iteration": 2}')


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def flags(**given):
    names = [option.name for option in _params()]
    return {**dict.fromkeys(names), "resume": False, "print_only": False, "verbose": 0, **given}


def _params():
    import click

    return train_module.with_options(click.command()(lambda **_: None)).params


def test_print_only_shows_jobs_and_command_and_does_nothing(rllib, home, tmp_path):
    result = rllib("train", *CART, "--slurm", CLUSTER, "--print-only", "--checkpoint-freq", "5")
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines()]
    assert f"ray up --yes --no-config-cache {CLUSTER}" in lines
    for option in ("--gres=gpu:rtx8000:1", "--partition=gpu", "--partition=cpu", "--requeue"):
        assert f"#SBATCH {option}" in lines
    assert any(
        re.match(r"exec python -m rllib_conspec\.slurm\.head_job conspec ", line) for line in lines
    )
    (command,) = [line for line in lines if line.startswith("rllib train ")]
    words = shlex.split(command)
    assert words[words.index("--checkpoint-freq") + 1] == "5"
    assert json.loads(words[words.index("--config") + 1]) == {
        "custom_resources_for_main_process": {"learner": 0.001},
        "num_gpus_per_learner": 1,
    }
    assert words[-2:] == ["--ray-address", "auto"]
    assert "--slurm" not in words and "--print-only" not in words
    assert not home.exists() and list(tmp_path.iterdir()) == []


def test_what_the_experiment_says_about_its_learner_stays():
    def settings(gpus, **config):
        return slurm.cluster_settings([Experiment("a", config=config)], gpus)

    learner = {"custom_resources_for_main_process": {"learner": 0.001}}
    assert settings(0) == learner
    assert settings(1) == {**learner, "num_gpus_per_learner": 1}
    assert settings(1, num_gpus_per_learner=0) == learner
    assert settings(2, num_learners=2) == learner
    assert settings(0, custom_resources_for_main_process={"x": 1}) == {}


def test_mistakes_cost_one_line(refused, home, tmp_path):
    assert refused("train", *CART, "--print-only") == "--print-only: only together with --slurm."
    assert "no such file" in refused("train", *CART, "--slurm", "none.yaml").lower()
    given = (*CART, "--slurm", CPU_CLUSTER, "--ray-address", "auto")
    assert refused("train", *given) == "--ray-address: not together with --slurm."
    onprem = refused("train", *CART, "--slurm", ROOT / "cluster" / "onprem.yaml")
    assert onprem.endswith("is not a Slurm cluster; use ray up and ray submit.")
    (tmp_path / "mine.yaml").write_text(
        CPU_CLUSTER.read_text().replace("partition:", "partitions:")
    )
    unknown = refused("train", *CART, "--slurm", "mine.yaml")
    place = "available_node_types.learner.node_config.partitions"
    assert unknown == f'mine.yaml: {place}: unknown Slurm option. Did you mean "partition"?'
    # The experiment is checked before anything is submitted, as without a cluster.
    wrong = refused(
        "train",
        "--run",
        "PPO",
        "--env",
        "CartPole-v1",
        "--slurm",
        CPU_CLUSTER,
        "--config",
        "{lrr: 1}",
    )
    assert wrong.startswith("--config: lrr: unknown option.")


def test_the_command_line_is_the_one_that_was_given():
    given = flags(
        config="{lr: 1}",
        checkpoint_at_end=False,
        num_samples=3,
        resume=True,
        verbose=2,
        slurm="x.yaml",
        print_only=True,
    )
    words = slurm.arguments_from("a.yaml", given)
    pairs = ["--config", "{lr: 1}", "--num-samples", "3"]
    assert words[:2] == ["-f", "a.yaml"]
    assert sorted(words[2:]) == sorted([*pairs, "--resume", "--no-checkpoint-at-end", "-vv"])
    assert slurm.arguments_from(None, flags()) == []


def test_the_batch_command_is_for_jobs(monkeypatch):
    from click.testing import CliRunner

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    result = CliRunner().invoke(slurm.main, ["-f", "a.yaml"])
    assert "this is for a Slurm job: sbatch cluster/train.sbatch -f FILE" in str(result.exception)
