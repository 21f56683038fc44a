"""What `ray up` says when it cannot go on, and what the provider tells Ray about jobs."""

import pytest
from clusters import Cluster
from real_slurm import wait_until

PROVIDER = """
import os
from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.node_provider import SlurmNodeProvider
from rllib_conspec.slurm.ray_node import INSTANCE
provider = SlurmNodeProvider({}, name)
"""
SCRIPT = "#!/bin/bash\n#SBATCH --job-name=ray-{name} --comment={comment}\nexec sleep 600\n"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            {"partitoin": "main"},
            "Error: available_node_types.learner.node_config.partitoin: unknown Slurm option. "
            'Did you mean "partition"?',
        ),
        (
            {"partition": "nowhere"},
            "Error: Slurm refused the head job: "
            "sbatch: error: invalid partition specified: nowhere",
        ),
    ],
)
def test_up_is_refused_in_one_line(idle_slurm, head, message):
    done = Cluster(idle_slurm, "refused", head, {}).up(check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert idle_slurm.squeue() == []


def test_a_node_is_a_job(idle_slurm):
    from rllib_conspec.slurm import jobs

    comment = jobs.encode({jobs.NODE_KIND: "worker", jobs.NODE_TYPE: "rollouts"})
    script = SCRIPT.format(name="mine", comment=comment)
    runs = idle_slurm.submit(script, "--nodelist=n2", "--exclusive")
    waits = idle_slurm.submit(script, "--nodelist=n2", "--exclusive")
    idle_slurm.submit(SCRIPT.format(name="other", comment=comment))
    wait_until(lambda: len(idle_slurm.squeue("-t", "R")) == 2, "two jobs run")
    code = """
workers = {jobs.NODE_KIND: "worker"}
assert sorted(provider.non_terminated_nodes(workers)) == sorted([runs, waits])
assert provider.non_terminated_nodes({jobs.NODE_KIND: "head"}) == []
assert provider.is_running(runs) and not provider.is_running(waits)
assert not provider.is_terminated(runs) and not provider.is_terminated(waits)
assert provider.is_terminated("999999") and not provider.is_running("999999")
assert provider.internal_ip(runs) == provider.external_ip(runs) == "10.77.0.12"
assert provider.get_node_id("10.77.0.12") == runs
assert provider.internal_ip(waits) == ""

provider.set_node_tags(runs, {"ray-node-status": "up-to-date"})
assert provider.node_tags(runs) == {
    jobs.NODE_KIND: "worker", jobs.NODE_TYPE: "rollouts", "ray-node-status": "up-to-date"
}
provider.set_node_tags("999999", {"ray-node-status": "gone"})  # must not raise

os.environ[INSTANCE] = runs  # the autoscaler on a head that is about to be requeued
provider.terminate_nodes([runs])
assert provider.non_terminated_nodes(workers) and not provider.is_terminated(runs)
del os.environ[INSTANCE]
provider.terminate_nodes([runs, waits])
assert provider.non_terminated_nodes({}) == []
assert provider.is_terminated(runs)
print("done")
"""
    assert idle_slurm.python(PROVIDER + code, name="mine", runs=runs, waits=waits) == "done\n"
    wait_until(lambda: len(idle_slurm.squeue()) == 1, "the other cluster's job is left")


def test_tags_of_a_job_that_ends_meanwhile_are_no_error(idle_slurm):
    """It may end between the question which jobs there are and the change of its comment."""
    script = SCRIPT.format(name="mine", comment="e30=")
    job_id = idle_slurm.submit(script)
    wait_until(lambda: idle_slurm.squeue("-t", "R"), "the job runs")
    code = """
import time
find, asked = jobs.find, []
def find_and_end(cluster):
    found = find(cluster)
    asked.append(dict(found))
    if len(asked) == 1:
        jobs.cancel([job_id])
        while jobs.show(job_id)["JobState"] in ("RUNNING", "COMPLETING"):
            time.sleep(0.1)
    return found
jobs.find = find_and_end
provider.set_node_tags(job_id, {"ray-node-status": "up-to-date"})
assert job_id in asked[0] and len(asked) == 2, asked
"""
    idle_slurm.python(PROVIDER + code, name="mine", job_id=job_id)


def test_tags_that_slurm_refuses_are_an_error(idle_slurm):
    job_id = idle_slurm.submit(SCRIPT.format(name="mine", comment="e30="))
    code = """
try:
    provider.set_node_tags(job_id, {"ray-node-status": "x" * jobs.MAX_COMMENT})
except jobs.SlurmError as error:
    print(error)
"""
    output = idle_slurm.python(PROVIDER + code, name="mine", job_id=job_id)
    assert output.startswith("the tags of a node are too long for a job's comment: ")


def test_down_waits_for_jobs_that_are_still_ending(idle_slurm):
    deaf, end = (idle_slurm.base / "work" / name for name in ("deaf", "end"))
    stubborn = f"trap '' TERM\ntouch {deaf}\nuntil [ -e {end} ]; do sleep 0.1; done\n"
    job_id = idle_slurm.submit(f"#!/bin/bash\n{stubborn}", "--job-name=ray-mine")
    # Slurm says RUNNING before the script has run its first line.
    wait_until(deaf.exists, "the job ignores SIGTERM")
    idle_slurm.login.run("scancel", job_id)
    code = "print(provider.non_terminated_nodes({}), provider.nodes_for_teardown({}))"
    assert idle_slurm.python(PROVIDER + code, name="mine") == f"[] ['{job_id}']\n"
    end.touch()
