"""What the tests of the command share: calling it here or as a process, and one real short run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rllib_conspec.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
# A policy, a memory and a network small enough for an iteration per second.
TINY_KEYS = """\
tiny:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 500}
  config:
    env_config: {keys: 1}
    episodes_per_batch: 4
    episodes_per_minibatch: 2
    num_epochs: 1
    num_env_runners: 0
    num_envs_per_env_runner: 4
    model_config: {encoder: conv, encoder_dim: 16, gru_dim: 16}
    conspec: {num_prototypes: 2, encoder_dim: 16, projection_dim: 16}
    seed: 0
"""
CART = """\
cart:
  run: PPO
  env: CartPole-v1
  stop: {training_iteration: 3}
  checkpoint_config: {checkpoint_frequency: 1}
  config:
    num_env_runners: 0
    train_batch_size_per_learner: 200
    num_epochs: 1
    seed: 0
"""


@pytest.fixture
def rllib(tmp_path, monkeypatch):
    """Call `rllib ...` in this process, in an empty directory; Ray must not be started by it."""
    monkeypatch.chdir(tmp_path)

    def no_ray(*args, **kwargs):
        raise AssertionError("Ray was started")

    monkeypatch.setattr("ray.init", no_ray)
    return lambda *args: CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def refused(rllib, tmp_path):
    """Call `rllib ...`, expect one line on stderr and exit code 2, and nothing written."""

    def call(*args):
        before = sorted(tmp_path.rglob("*"))
        result = rllib(*args)
        assert result.exit_code == 2, result.output
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert result.stderr.startswith("rllib: ")
        assert sorted(tmp_path.rglob("*")) == before
        return result.stderr.strip().removeprefix("rllib: ")

    return call


def start(*args, cwd):
    """Start `rllib ...` as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "rllib_conspec.cli.main", *map(str, args)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, timeout=150):
    """Wait for a process; its exit code and output."""
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, output


@pytest.fixture(scope="session")
def cart_run(tmp_path_factory):
    """A finished run of PPO on CartPole: (directory with results/, its output). Read only."""
    directory = tmp_path_factory.mktemp("cart")
    (directory / "cart.yaml").write_text(CART)
    code, output = finish(start("train", "-f", "cart.yaml", cwd=directory))
    assert code == 0, output
    return directory, output


@pytest.fixture
def checkpoint(cart_run, tmp_path):
    """A copy of a CartPole checkpoint, to spoil as a test likes."""
    source = cart_run[0] / "results" / "cart" / "trial_0" / "checkpoint_000002"
    return Path(shutil.copytree(source, tmp_path / "checkpoint_000002"))
