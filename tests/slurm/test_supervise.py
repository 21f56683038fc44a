"""Runs in a real job that is told to stop. (With Ray and real training: test_train_job.py.)"""

import sys

import pytest
from real_slurm import wait_until

from rllib_conspec.slurm.runs import Run, Status

JOB = f"""#!/bin/bash
exec {sys.executable} -u - <<'END'
import os
from pathlib import Path
from types import SimpleNamespace
from rllib_conspec.slurm.allocation import Allocation
from rllib_conspec.slurm.supervise import Supervisor, say

with Allocation(say) as job:
    ray = SimpleNamespace(alive=True)
    runs = Path(os.environ["RUNS"])
    supervisor = Supervisor(job, ray, runs, {{}})
    notice = supervisor.watch(until=lambda: not supervisor.unfinished())
    print("requeue:", notice and supervisor.stop(notice))
END
"""
# Says what it was given; saves when it is interrupted, as `rllib train` does.
PROGRAM = """
import os, signal, sys, time
def save(*_):
    if "saves" in sys.argv:
        os.makedirs("results/keys1")
        open("results/keys1/experiment_state-1.json", "w").close()
    sys.exit(130)
signal.signal(signal.SIGINT, save)
print("runs", *sys.argv[1:], flush=True)
time.sleep(600)
"""


@pytest.fixture
def told_to_stop(idle_slurm, tmp_path):
    """Start a run in a job, send the signal of a time limit, wait for the end: (log, status)."""

    def play(word, before=None):
        work = idle_slurm.base / "work" / f"supervised-{word}"
        directory = work / "runs" / "run"
        command = [sys.executable, "-c", PROGRAM, word]
        Run(command, command, str(work), [str(work / "results" / "keys1")]).save(directory)
        if before:
            before.save(directory)
        export = f"--export=ALL,RUNS={work}/runs"
        job_id = idle_slurm.login.run(
            *("sbatch", "--parsable", export, f"--output={work}/log"),
            input=JOB,
        ).stdout.strip()
        log = directory / "log"
        wait_until(lambda: log.exists() and "runs" in log.read_text(), "the program runs")
        idle_slurm.login.run("scancel", "--signal=USR1", "--batch", job_id)
        wait_until(lambda: not idle_slurm.squeue(), "the job has ended")
        return (work / "log").read_text(), Status.of(directory)

    return play


def test_a_run_that_has_saved_is_to_be_requeued(told_to_stop):
    log, status = told_to_stop("saves")
    assert "the time limit is near; saving" in log and "requeue: True" in log
    assert (status.state, status.fruitless) == ("interrupted", 0)


def test_a_run_that_never_gets_to_save_is_given_up(told_to_stop):
    log, status = told_to_stop("idle", before=Status("waiting", fruitless=2))
    assert "the time limit is too short: nothing was saved in three starts" in log
    assert "requeue: False" in log
    assert (status.state, status.code) == ("finished", 1)
