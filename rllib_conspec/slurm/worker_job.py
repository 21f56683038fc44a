"""`python -m rllib_conspec.slurm.worker_job`: the program that runs inside a worker job.

Joins the head's Ray and leaves as soon as the head is gone, so that no node is held for nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.ray_node import INSTANCE, RayNode, authentication, reachable
from rllib_conspec.slurm.supervise import say

CHECK_SECONDS = 5
# A head that does not answer for this long is gone: its node is down, or it was killed.
GONE_SECONDS = 20
# `srun` passes USR1 on to its tasks; it answers TERM by killing them.
LEAVE = (signal.SIGTERM, signal.SIGUSR1)


def main(cluster: str, directory_path: str, temp_dir: str) -> None:
    address = head_address(cluster)
    if address is None:
        say("the head is gone: nothing to join")
        return
    directory = ClusterDirectory.at(directory_path)
    job_id = os.environ["SLURM_JOB_ID"]
    environment = {**authentication(directory.token), INSTANCE: job_id}
    serve(RayNode(temp_dir, cluster, environment, directory.log(job_id)), address)


def serve(ray: RayNode, address: str) -> None:
    """Be a node of the cluster whose head is at `address`, until one of the two ends."""
    for number in LEAVE:
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        ray.start_worker(address)
        watch(ray, address)
    finally:
        for number in LEAVE:  # a second one must not keep it from cleaning up
            signal.signal(number, signal.SIG_IGN)
        ray.close()


def head_address(cluster: str) -> str | None:
    """Where the running head of this cluster answers, if there is one."""
    for job in jobs.find(cluster).values():
        if job.running and job.is_head:
            return job.tags.get(jobs.ADDRESS)
    return None


def watch(ray: RayNode, address: str) -> None:
    host, _, port = address.rpartition(":")
    answered = time.monotonic()
    while ray.alive:
        time.sleep(CHECK_SECONDS)
        if reachable(host, int(port)):
            answered = time.monotonic()
        elif time.monotonic() - answered > GONE_SECONDS:
            say(f"the head at {address} is gone")
            return
    say(f"Ray has ended: {ray.last_words()}")
    ray.keep_logs()


if __name__ == "__main__":
    main(*sys.argv[1:])
