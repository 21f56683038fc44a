"""Unity builds that cannot be used are answered in one line, before anything starts."""

import sys
from pathlib import Path

import pytest

ODD_PLAYER = Path(__file__).parents[1] / "unity" / "odd_player.py"
EXPERIMENT = """\
tree:
  run: ConSpec
  env: rllib_conspec:Unity-v0
  config:
    env_config: {{file_name: "{file}", timeout: 20}}
    model_config: {{encoder: conv, encoder_dim: 8, gru_dim: 0}}
    max_episode_steps: 65
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
