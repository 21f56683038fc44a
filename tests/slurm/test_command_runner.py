"""Commands and files on a node, through srun."""

import pytest
from real_slurm import wait_until

RUNNER = """
import click, os
from rllib_conspec.slurm.node_provider import SlurmNodeProvider
provider = SlurmNodeProvider({}, "mine")
runner = provider.get_command_runner("", job_id, {}, "mine", None, False)
"""


@pytest.fixture
def run(idle_slurm):
    """Python on the login host with a `runner` for a job on n2."""
    job = "#!/bin/bash\n#SBATCH --job-name=ray-mine --nodelist=n2\nexec sleep 600\n"
    job_id = idle_slurm.submit(job)
    wait_until(lambda: idle_slurm.squeue("-t", "R"), "the job runs")
    return lambda code: idle_slurm.python(RUNNER + code, job_id=job_id).splitlines()


def test_commands_and_files(idle_slurm, run):
    folder = idle_slurm.base / "work" / "files"
    (folder / "some dir").mkdir(parents=True)
    (folder / "some dir" / "a.txt").write_text("a")
    (folder / "some dir" / "skip.log").write_text("no")
    code = f"""
os.chdir({str(folder)!r})
hello = {{"HELLO": "it's me"}}
print(runner.run("hostname; echo $HELLO; pwd", with_output=True, environment_variables=hello))
runner.run_rsync_up("some dir/a.txt", "/tmp/arrived.txt")  # /tmp is private to the node
runner.run_rsync_up("some dir/", "/tmp/arrived dir/", {{"rsync_exclude": ["*.log"]}})
print(runner.run("cat /tmp/arrived.txt; ls '/tmp/arrived dir'", with_output=True))
runner.run_rsync_down("/tmp/arrived.txt", "back.txt")
runner.run_rsync_down("/tmp/arrived dir", ".")
print(sorted(os.listdir(".")), os.listdir("arrived dir"))
runner.run_rsync_up("back.txt", "~/ray_bootstrap_config.yaml")
print("ray_bootstrap_config.yaml" in os.listdir(os.environ["HOME"]))
print(provider.directory.bootstrap.read_text())
"""
    (idle_slurm.home / ".rllib_conspec" / "slurm" / "mine").mkdir(parents=True, exist_ok=True)
    assert run(code) == [
        *("n2", "it's me", str(idle_slurm.home), ""),
        *("aa.txt", ""),
        "['arrived dir', 'back.txt', 'some dir'] ['a.txt']",
        *("False", "a"),
    ]


def test_what_cannot_be_done_is_said(run):
    code = """
for arguments in (
    {"cmd": "exit 3"},
    {"port_forward": [(8265, 8265)]},
    {"cmd": "echo; ray stop; sudo shutdown -h now"},
):
    try:
        runner.run(**arguments)
    except click.ClickException as error:
        print(error.message)
job_id = "999999"
try:
    provider.get_command_runner("", job_id).run("hostname")
except click.ClickException as error:
    print(error.message)
# `ray stop` would end the Ray of other clusters on the node, too.
print(repr(runner.run("ray stop")))
"""
    assert run(code) == [
        "Command failed with exit code 3: exit 3",
        "Slurm forwards no ports. If your site allows it: ssh -L 8265:localhost:8265 n2",
        "--stop is for machines of one's own. Use `ray down`.",
        "Job 999999 has ended.",
        "''",
    ]
