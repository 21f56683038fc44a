"""What Slurm tells a job, told on by `Allocation`: real jobs, real signals."""

import sys
import time

import pytest
from real_slurm import wait_until

JOB = f"""#!/bin/bash
exec {sys.executable} -u - <<'END'
import time
from rllib_conspec.slurm.allocation import Allocation, Notice

with Allocation(print) as job:
    print("start", job.restarts)
    while True:
        notice = job.notice()
        if notice is not None:
            print(notice.name)
        if notice is Notice.ENDING:
            break
        if notice in (Notice.PREEMPTED, Notice.TIME_LIMIT):
            job.requeue()
        time.sleep(0.1)
END
"""


@pytest.fixture
def job(idle_slurm):
    """A running job that writes down what it is told; `lines()` gives what it has written."""

    def submit(*options):
        job_id = idle_slurm.submit(JOB, "--requeue", *options)
        wait_until(lambda: "start 0" in idle_slurm.output(job_id), "the job runs")
        return job_id

    return submit


def lines(slurm, job_id):
    words = ("start", "PREEMPTED", "TIME_LIMIT", "ENDING", "cannot")
    return [line for line in slurm.output(job_id).splitlines() if line.startswith(words)]


def test_a_cancelled_job_is_told(idle_slurm, job):
    job_id = job()
    idle_slurm.login.run("scancel", job_id)
    wait_until(lambda: not idle_slurm.squeue(), "the job has ended")
    assert lines(idle_slurm, job_id) == ["start 0", "ENDING"]


def test_the_signal_before_the_time_limit_requeues(idle_slurm, job):
    job_id = job()
    idle_slurm.login.run("scancel", "--signal=USR1", "--batch", job_id)
    wait_until(lambda: "start 1" in idle_slurm.output(job_id), "the job runs again")
    assert lines(idle_slurm, job_id) == ["start 0", "TIME_LIMIT", "start 1"]


def test_a_preempted_job_is_told_at_once_and_requeues_itself(idle_slurm, job):
    job_id = job("--nodelist=n1")
    start = time.monotonic()
    other = idle_slurm.submit("#!/bin/bash\nsleep 1\n", "-p", "urgent", "-w", "n1", "--exclusive")
    wait_until(lambda: "PREEMPTED" in idle_slurm.output(job_id), "the job is told")
    # The partition's grace time is 60 s: it was not Slurm that ended the job.
    wait_until(lambda: not idle_slurm.squeue("-j", other, "-t", "PD"), "the nodes are given up")
    assert time.monotonic() - start < 50
    wait_until(lambda: "start 1" in idle_slurm.output(job_id), "the job runs again")
    assert lines(idle_slurm, job_id) == ["start 0", "PREEMPTED", "start 1"]


def test_a_job_that_may_not_be_requeued_says_so_and_fails(idle_slurm, job):
    job_id = job("--no-requeue")
    idle_slurm.login.run("scancel", "--signal=USR1", "--batch", job_id)
    wait_until(lambda: not idle_slurm.squeue(), "the job has ended")
    assert lines(idle_slurm, job_id)[:2] == ["start 0", "TIME_LIMIT"]
    assert "cannot be requeued" in lines(idle_slurm, job_id)[2]
    assert "JobState=FAILED" in idle_slurm.login.run("scontrol", "show", "job", job_id).stdout
