import shlex
import subprocess
import sys

import pytest

from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.sbatch import head_script, prelude, worker_script

OPTIONS = {
    "partition": "gpu",
    "constraint": "rtx&nvme",
    "gres": "gpu:rtx8000:1",
    "cpus": 4,
    "mem": "32G",
    "time": "1-00:00:00",
    "sbatch": ["--mail-type=END"],
}


@pytest.fixture
def directory(tmp_path):
    return ClusterDirectory("mine", tmp_path)


def directives(script):
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH ")]
    return [word for line in lines for word in shlex.split(line.removeprefix("#SBATCH "))]


def test_a_head_may_be_requeued_and_is_warned(directory):
    script = head_script("mine", OPTIONS, "TAGS", directory, "/scratch")
    found = directives(script)
    assert {"--requeue", "--open-mode=append", "--signal=B:USR1@120"} <= set(found)
    assert {
        "--job-name=ray-mine",
        "--comment=TAGS",
        f"--output={directory.logs}/%j.log",
        "--partition=gpu",
        "--constraint=rtx&nvme",
        "--gres=gpu:rtx8000:1",
        "--cpus-per-task=4",
        "--mem=32G",
        "--time=1-00:00:00",
        "--mail-type=END",
    } <= set(found)
    command = f"exec python -m rllib_conspec.slurm.head_job mine {directory.path} /scratch"
    assert script.splitlines()[-1] == command
    # sbatch stops reading options at the first command.
    assert "#SBATCH" not in script[script.index("export PATH") :]


def test_a_worker_is_not_requeued_and_knows_its_resources(directory):
    script = worker_script(
        "mine", {"cpus": 2}, "TAGS", directory, "/tmp", "rollouts", {"CPU": 2}, {"a": "b"}
    )
    assert "--no-requeue" in directives(script)
    assert "--signal=B:USR1@120" not in directives(script)
    assert "export RAY_NODE_TYPE_NAME=rollouts" in script
    assert """export RAY_OVERRIDE_RESOURCES='{"CPU": 2}'""" in script
    assert """export RAY_OVERRIDE_LABELS='{"a": "b"}'""" in script


def test_modules_venv_variables_and_lines_come_in_this_order(tmp_path):
    venv = tmp_path / "my venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "activate").write_text('echo "venv"')
    options = {
        "modules": ["cuda/12"],
        "venv": str(venv),
        "env": {"GREETING": "it's me"},
        "setup": ['echo "$GREETING"'],
    }
    lines = ["module() { echo module $*; }", *prelude(options)]
    output = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert output.stdout.splitlines() == ["module load cuda/12", "venv", "it's me"]


def test_a_missing_venv_ends_the_job(tmp_path):
    lines = [*prelude({"venv": str(tmp_path / "none")}), "echo started"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "started" not in done.stdout
    assert "none/bin/activate" in done.stderr


def test_without_a_venv_the_same_python_is_used():
    lines = [*prelude({}), "command -v python"]
    output = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert output.stdout.rsplit("/", 1)[0] == sys.executable.rsplit("/", 1)[0]


def test_modules_need_a_login_shell(directory):
    common = ("TAGS", directory, "/tmp")
    assert head_script("mine", {}, *common).startswith("#!/bin/bash\n")
    assert head_script("mine", {"modules": ["cuda"]}, *common).startswith("#!/bin/bash -l\n")
