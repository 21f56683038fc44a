import subprocess
import sys
import time

import pytest

import rllib_conspec


def test_version_and_help(rllib):
    assert rllib("--version").stdout == f"rllib, version {rllib_conspec.__version__}\n"
    overview = rllib("--help").stdout
    assert all(command in overview for command in ("train", "evaluate", "example", "completion"))
    flags = rllib("train", "--help").stdout
    for flag in (
        "--run", "--algo", "--env", "--config", "--stop", "--experiment-name", "--num-samples",
        "--storage-path", "--restore", "--resume", "--checkpoint-freq", "--checkpoint-at-end",
        "--keep-checkpoints-num", "--ray-address", "--ray-num-cpus", "--ray-num-gpus",
        "--scheduler", "--wandb", "--verbose",
    ):  # fmt: skip
        assert flag in flags


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(rllib, shell):
    assert "_RLLIB_COMPLETE" in rllib("completion", shell).stdout


def test_help_needs_neither_ray_nor_torch():
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from rllib_conspec.cli.main import main\n"
        "assert CliRunner().invoke(main, ['train', '--help']).exit_code == 0\n"
        "assert not {'ray', 'torch'} & set(sys.modules)\n"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.monotonic() - began < 10


def test_an_unexpected_word_is_answered_by_one_line(refused):
    assert refused("train", "keys1.yaml").startswith('train: unexpected "keys1.yaml".')
    assert refused("train").startswith("nothing to train")
