"""The programs that run inside a train job (cluster/train.sbatch): one job for one training run.

On its first node `run_in_job` starts Ray on all nodes and trains; it is requeued until the run has
finished. On the others it starts `python -m rllib_conspec.slurm.train_job`, which joins. Their Ray
is private to the job: ports, temporary directory and token are its own, so that other jobs on the
same nodes are not disturbed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.allocation import Allocation
from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.options import LEARNER
from rllib_conspec.slurm.ray_node import RayNode, StartFailed, authentication
from rllib_conspec.slurm.runs import Run, Status
from rllib_conspec.slurm.supervise import Supervisor, say

LEAVE_SECONDS = 10
# All train jobs of a user: what one of them had to leave on a node, the next one there removes.
CLUSTER = "train.sbatch"


def run_in_job(describe: Callable[[], Run]) -> int:
    """What the job does on its first node; the run's exit code, unless the job is requeued.

    `describe` says what to run; it is asked at the first start only.
    """
    with Allocation(say) as job:
        directory = ClusterDirectory(f"job-{job.id}")
        run_directory = directory.runs / "run"
        if job.restarts == 0 or not (run_directory / "run.json").exists():
            run = describe()
            directory.remove()
            directory.create()
            run.save(run_directory)
        directory.new_token()
        variables = authentication(directory.token)
        environment = variables | node_environment(is_head=True)
        ray = RayNode(tempfile.gettempdir(), CLUSTER, environment, directory.log("ray"))
        workers = None
        try:
            ray.start_head(["--include-dashboard=false"], say)
            say(f"Ray answers at {ray.address}")
            workers = start_workers(ray.address, directory)
            variables |= {"RAY_ADDRESS": ray.address}
            supervisor = Supervisor(job, ray, directory.runs, variables, own_logs=False)
            notice = supervisor.watch(until=lambda: not supervisor.unfinished())
            requeue = notice is not None and supervisor.stop(notice)
        except StartFailed as error:
            say(str(error))
            return 1
        finally:
            ray.close()
            if workers is not None:
                stop_workers(workers)
            directory.forget()
        if requeue:
            say("back into the queue")
            job.requeue()
        status = Status.of(run_directory)
        if status.over:
            directory.remove()
        return status.code if status.code is not None else 130


def node_environment(is_head: bool) -> dict[str, str]:
    """The Ray resources of a node of this job, from what Slurm says about it."""
    resources = {"CPU": int(os.environ.get("SLURM_CPUS_ON_NODE", 1))}
    if gpus := int(os.environ.get("SLURM_GPUS_ON_NODE") or 0):
        resources["GPU"] = gpus
    if is_head:
        resources[LEARNER] = 1
    return {"RAY_OVERRIDE_RESOURCES": json.dumps(resources)}


def start_workers(address: str, directory: ClusterDirectory) -> subprocess.Popen | None:
    """Ray on all nodes of the job but this one."""
    count = int(os.environ.get("SLURM_JOB_NUM_NODES", 1)) - 1
    if count == 0:
        return None
    job, here = os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"]
    words = ["srun", f"--jobid={job}", f"--nodes={count}", f"--ntasks={count}", f"--exclude={here}"]
    # A node that is lost must not take the others with it.
    words += ["--overlap", "--mem=0", "--kill-on-bad-exit=0"]
    join = [sys.executable, "-m", "rllib_conspec.slurm.train_job"]
    return subprocess.Popen(
        [*words, *join, address, str(directory.path)],
        env=jobs.clean_environment(),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_workers(step: subprocess.Popen) -> None:
    """Let the other nodes clean up, then end the step."""
    step.send_signal(signal.SIGUSR1)
    try:
        step.wait(LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        step.terminate()


def worker(address: str, directory_path: str) -> None:
    """What the job does on every other node; ends with the step that `start_workers` made."""
    from rllib_conspec.slurm.worker_job import serve

    directory = ClusterDirectory.at(directory_path)
    name = os.environ["SLURMD_NODENAME"]
    environment = authentication(directory.token) | node_environment(is_head=False)
    serve(RayNode(tempfile.gettempdir(), CLUSTER, environment, directory.log(name)), address)


if __name__ == "__main__":
    worker(*sys.argv[1:])
