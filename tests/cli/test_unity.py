"""Training with players, by command: builds that cannot be used, and what is left behind."""

import signal
import sys
import time
from pathlib import Path

import pytest

ODD_PLAYER = Path(__file__).parents[1] / "unity" / "odd_player.py"
EXPERIMENT = """\
tree:
  run: ConSpec
  env: rllib_conspec:Unity-v0
  config:
    env_config: {{file_name: "{file}", timeout: 20}}
    model_config: {{encoder: conv, encoder_dim: 8, core_dim: 0}}
    max_episode_steps: 65
"""
RUNNING = """\
tree:
  run: ConSpec
  env: rllib_conspec:Unity-v0
  stop: {{training_iteration: {iterations}}}
  config:
    env_config: {{log_dir: "{logs}"}}
    model_config: {{encoder: strided, encoder_dim: 8, core_dim: 0}}
    num_env_runners: 2
    num_envs_per_env_runner: 2
    episodes_per_batch: 4
    num_epochs: 1
    conspec: {{encoder: strided, encoder_dim: 8}}
"""


@pytest.fixture
def build(tmp_path):
    """A build in which something is wrong."""

    def make(kind):
        file = tmp_path / "tree.x86_64"
        if kind != "missing":
            file.write_text(f'#!/bin/sh\nexec {sys.executable} {ODD_PLAYER} {kind} "$@"\n')
            file.chmod(0o644 if kind == "not executable" else 0o755)
        return file

    return make


@pytest.mark.parametrize(
    ("kind", "says"),
    [("missing", "does not exist"), ("not executable", "executable"), ("version", "2.0.0")],
)
def test_a_build_that_cannot_be_used(rllib, tmp_path, build, kind, says):
    (tmp_path / "tree.yaml").write_text(EXPERIMENT.format(file=build(kind)))
    result = rllib("train", "-f", "tree.yaml")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rllib: tree.yaml: tree.config.env_config.file_name: ")
    assert says in line


def test_a_misspelt_option_of_the_player(rllib, tmp_path):
    text = EXPERIMENT.format(file="").replace("timeout: 20", "time_out: 20")
    (tmp_path / "tree.yaml").write_text(text)
    result = rllib("train", "-f", "tree.yaml")
    assert result.exit_code == 2
    assert 'Did you mean "timeout"?' in result.stderr


def players(logs):
    """Processes of the players that write into this directory."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue  # it has just ended
        if "--mlagents-port" in words and any(word.startswith(str(logs)) for word in words):
            found.add(int(process.name))
    return found


def test_ctrl_c_resume_and_kill_leave_no_player(command, tmp_path):
    logs = tmp_path / "logs"
    (tmp_path / "tree.yaml").write_text(RUNNING.format(iterations=1000, logs=logs))
    first = command("train", "-f", "tree.yaml")
    first.wait_for("iteration 1/1000")
    assert len(players(logs)) == 2
    first.process.send_signal(signal.SIGINT)
    code, output = first.finish()
    assert code == 130
    assert "Resume with: rllib train -f tree.yaml --resume" in output
    assert not players(logs)

    second = command("train", "-f", "tree.yaml", "--resume")
    second.wait_for("Resuming")
    second.wait_for("iteration ")
    assert "iteration 1/" not in second.output
    assert len(players(logs)) == 2
    second.process.kill()
    killed = time.monotonic()
    while players(logs):
        assert time.monotonic() - killed < 30, "a player outlives its driver"
        time.sleep(0.05)
