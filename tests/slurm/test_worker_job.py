"""Worker jobs without a head. (With one: test_cluster_life.py.)"""

from real_slurm import wait_until

from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.sbatch import worker_script


def test_a_worker_that_starts_after_its_head_has_gone_ends_at_once(idle_slurm):
    """It may have waited in the queue for hours."""
    directory = ClusterDirectory("lonely", idle_slurm.home)
    directory.create()
    script = worker_script(
        "lonely", {"cpus": 1}, "TAGS", directory, "/tmp", "rollouts", {"CPU": 1}, {}
    )
    done = idle_slurm.login.run("sbatch", "--parsable", input=script)
    job_id = done.stdout.strip()
    wait_until(lambda: not idle_slurm.squeue(), "the job has ended")
    assert "the head is gone: nothing to join" in directory.log(job_id).read_text()
    assert "JobState=COMPLETED" in idle_slurm.login.run("scontrol", "show", "job", job_id).stdout
