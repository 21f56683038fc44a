"""A head that cannot start Ray ends; it does not try for ever, and `ray up` says why."""

import re
import time

from clusters import Cluster
from real_slurm import WAIT_SECONDS, wait_until


def test_a_job_that_ends_before_it_begins_shows_its_log(idle_slurm):
    cluster = Cluster(idle_slurm, "empty", {"venv": "/no/such/venv"}, {})
    done = cluster.up(check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in output, output
    assert output.count("/no/such/venv/bin/activate: No such file or directory") == 1, output
    wait_until(lambda: not idle_slurm.squeue(), "the job is gone")


def test_a_start_that_fails_ends_after_three_tries_with_its_reason(idle_slurm):
    broken = "ray start --head --no-such-flag --autoscaling-config=~/ray_bootstrap_config.yaml"
    cluster = Cluster(
        idle_slurm, "broken", {"nodelist": "n1"}, {}, head_start_ray_commands=[broken]
    )
    # The head has to wait for its node first, and says so.
    other = idle_slurm.submit("#!/bin/bash\nexec sleep 600\n", "--nodelist=n1", "--exclusive")
    wait_until(lambda: idle_slurm.squeue("-t", "R"), "n1 is taken")
    file = idle_slurm.base / "work" / "broken.out"
    with file.open("w") as stream:
        up = cluster.start_up(stream)
    waits = r"Job \d+ is PENDING: Resources, 1 of 1 waiting in main"
    wait_until(lambda: re.search(waits, file.read_text()), "it says so")
    idle_slurm.login.run("scancel", other)
    start = time.monotonic()
    assert up.wait(WAIT_SECONDS) != 0
    output = file.read_text()
    print(f"\nray up gave up {time.monotonic() - start:.0f} s after its node was free")
    assert "Traceback" not in output, output
    assert "The head job could not start Ray." in output, output
    assert "try 1 of 3 to start Ray failed: " in output
    assert output.count("Ray did not start in 3 tries: ") == 1
    assert "No such option" in output and "--no-such-flag" in output
    wait_until(lambda: not idle_slurm.squeue(), "the job is gone, and stays so")
    shown = idle_slurm.login.run("scontrol", "show", "job").stdout
    (job,) = [part for part in shown.split("\n\n") if "JobName=ray-broken" in part]
    assert "JobState=FAILED" in job and "Restarts=0" in job
