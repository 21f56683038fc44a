"""`python -m rllib_conspec.slurm.head_job`: the program that runs inside a head job.

Starts Ray when `ray up` has said how, runs what `rllib train --slurm` has submitted, and after a
requeue does both again by itself. Ends when Ray cannot be started: that is never requeued.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.allocation import Allocation, Notice
from rllib_conspec.slurm.directory import ClusterDirectory, read_json, write_private
from rllib_conspec.slurm.ray_node import INSTANCE, RayNode, StartFailed, authentication
from rllib_conspec.slurm.supervise import POLL_SECONDS, Supervisor, say

# The client sends the start order within seconds; if it was interrupted, nobody will.
ORDER_SECONDS = 900
# Commands given with `ray exec` find the same programs and libraries as this job.
SHELL = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")


def main(cluster: str, directory_path: str, temp_dir: str) -> None:
    directory = ClusterDirectory.at(directory_path)
    with Allocation(say) as job:
        # After a requeue: the old workers hold nodes and can never join again.
        cancel_workers(cluster, job.id)
        tag(cluster, job, address=None)
        ray = None
        try:
            order = wait_for_order(directory, job)
            ray = start_ray(directory, temp_dir, cluster, job, order)
            variables = authentication(directory.token) | {"RAY_ADDRESS": ray.address}
            publish(cluster, directory, job, variables)
            supervisor = Supervisor(job, ray, directory.runs, variables)
            notice = supervisor.watch(until=lambda: False)
            requeue = supervisor.stop(notice)
        finally:
            if ray is not None:
                ray.close()
            cancel_workers(cluster, job.id)
        if requeue:
            say("back into the queue")
            job.requeue()
        say("ends")


def wait_for_order(directory: ClusterDirectory, job: Allocation) -> dict:
    """How to start Ray, from `ray up`; it is still there after a requeue."""
    end = time.monotonic() + ORDER_SECONDS
    while (order := read_json(directory.start_order)) is None or order["job"] != job.id:
        if job.notice() is Notice.ENDING:
            raise SystemExit(0)
        if time.monotonic() > end:
            say(f"nobody said how to start Ray for {ORDER_SECONDS} s; run `ray up` again")
            raise SystemExit(1)
        time.sleep(POLL_SECONDS)
    return order


def start_ray(
    directory: ClusterDirectory, temp_dir: str, cluster: str, job: Allocation, order: Mapping
) -> RayNode:
    environment = {
        **authentication(directory.token),
        **order["environment"],
        "RAY_enable_autoscaler_v2": "1",
        INSTANCE: job.id,
        "RAY_NODE_TYPE_NAME": jobs.find(cluster)[job.id].tags[jobs.NODE_TYPE],
    }
    ray = RayNode(temp_dir, cluster, environment, directory.log(job.id))
    try:
        ray.start_head(order["flags"], say)
    except StartFailed as error:
        ray.close()
        say(str(error))
        raise SystemExit(1) from None
    return ray


def publish(
    cluster: str, directory: ClusterDirectory, job: Allocation, variables: Mapping[str, str]
) -> None:
    """Tell workers and clients where Ray answers, and commands what they need to talk to it."""
    shell = {name: os.environ[name] for name in SHELL if name in os.environ}
    lines = [
        f"export {name}={shlex.quote(value)}" for name, value in {**shell, **variables}.items()
    ]
    write_private(directory.environment, "\n".join(lines) + "\n")
    tag(cluster, job, variables["RAY_ADDRESS"])
    say(f"Ray answers at {variables['RAY_ADDRESS']}")


def tag(cluster: str, job: Allocation, address: str | None) -> None:
    """Note in Slurm where Ray answers, or that it does not."""
    before = jobs.find(cluster)[job.id].tags
    tags = {name: value for name, value in before.items() if name != jobs.ADDRESS}
    if address is not None:
        tags[jobs.ADDRESS] = address
    if tags != before:
        jobs.update_tags(job.id, tags)


def cancel_workers(cluster: str, head: str) -> None:
    try:
        jobs.cancel([job for job in jobs.find(cluster) if job != head])
    except jobs.SlurmError as error:
        say(f"cannot cancel worker jobs: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
