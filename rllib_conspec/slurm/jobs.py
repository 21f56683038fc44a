"""Slurm's commands: submit, list, tag, cancel and requeue jobs.

Ray's tags of a node are kept in its job's Comment, so that Slurm itself is the only place that
knows which nodes a cluster has. Others can read a Comment: no secret may get into a tag.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rllib_conspec.errors import UserError

# Ray's names of its tags. Not imported: our programs in jobs would wait seconds for all of Ray.
NODE_KIND, HEAD, NODE_TYPE = "ray-node-type", "head", "ray-user-node-type"
# Our own tag: where Ray's head answers, as host:port.
ADDRESS = "address"
_FIELDS = ("%i", "%T", "%r", "%P", "%S", "%N", "%k")
_ALIVE = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "SIGNALING")
# What a job must not inherit from the job or the cluster that submits it.
_FOREIGN = (
    "SLURM_",
    "SBATCH_",
    "SRUN_",
    "SALLOC_",
    "RAY_",
    "CUDA_VISIBLE",
    "GPU_DEVICE",
    "ROCR_VISIBLE",
)
_KEEP = ("SLURM_CONF",)
MAX_COMMENT = 1024
# A controller that restarts or is overrun comes back soon.
_BUSY = "(?i)unable to contact|timed out|connection refused|zero bytes|resource temporarily"
_PAUSES = (1, 3, 9)


class SlurmError(UserError):
    """A Slurm command refused; the message is Slurm's own."""


@dataclass(frozen=True)
class Job:
    """One line of squeue."""

    id: str
    state: str
    reason: str = ""
    partition: str = ""
    start: str = ""
    node: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Waits or runs; not on its way out."""
        return self.state in _ALIVE

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"

    @property
    def is_head(self) -> bool:
        return self.tags.get(NODE_KIND) == HEAD


def job_name(cluster: str) -> str:
    return f"ray-{cluster}"


def clean_environment() -> dict[str, str]:
    """This process's environment without what belongs to another job or cluster."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEEP or not name.startswith(_FOREIGN)
    }


def call(*words: str, text: str | None = None, timeout: float = 60) -> str:
    """Run a Slurm command and return its output; a failure carries the command's message."""
    for wait in _PAUSES:
        try:
            return _call(words, text, timeout)
        except SlurmError as error:
            # sbatch is not repeated: the job may have been accepted all the same.
            if words[0] == "sbatch" or not re.search(_BUSY, str(error)):
                raise
            time.sleep(wait)
    return _call(words, text, timeout)


def _call(words: Sequence[str], text: str | None, timeout: float) -> str:
    try:
        done = subprocess.run(
            words,
            input=text,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=clean_environment(),
            check=False,
        )
    except FileNotFoundError:
        raise SlurmError(f"{words[0]}: not found. Is this a machine of a Slurm cluster?") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{words[0]}: no answer from Slurm for {timeout:g} s.") from None
    if done.returncode != 0:
        message = " ".join((done.stderr or done.stdout).split())
        raise SlurmError(message or f"{words[0]}: exit code {done.returncode}")
    return done.stdout


def submit(script: str) -> str:
    """Submit a batch script; the id of its job."""
    # By standard input: a command line would be seen by everyone on the machine.
    return call("sbatch", "--parsable", text=script).strip().partition(";")[0]


def find(cluster: str) -> dict[str, Job]:
    """All jobs of this user's cluster that Slurm still knows as unfinished, by id."""
    listing = call(
        "squeue",
        "--me",
        "--noheader",
        f"--name={job_name(cluster)}",
        f"--format={'|'.join(_FIELDS)}",
    )
    jobs = [_parse(line) for line in listing.splitlines() if line.strip()]
    return {job.id: job for job in jobs}


def _parse(line: str) -> Job:
    *words, comment = line.strip().split("|", len(_FIELDS) - 1)
    return Job(*words, tags=decode(comment))


def update_tags(job_id: str, tags: Mapping[str, str]) -> None:
    call("scontrol", "update", f"JobId={job_id}", f"Comment={encode(tags)}")


def cancel(job_ids: Sequence[str]) -> None:
    if job_ids:
        call("scancel", *job_ids)


def requeue(job_id: str) -> None:
    call("scontrol", "requeue", job_id)


def show(job_id: str) -> dict[str, str]:
    """The fields of `scontrol show job`."""
    words = call("scontrol", "--oneliner", "show", "job", job_id).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def place_in_queue(job: Job) -> str:
    """Why a job waits and for how long, in Slurm's words: 'Priority, 3 of 12 in gpu, ...'."""
    pending = call(
        *("squeue", "--noheader", "--states=PENDING", f"--partition={job.partition}"),
        *("--sort=-p,i", "--format=%i"),
    ).split()
    words = [job.reason]
    if job.id in pending:
        words.append(f"{pending.index(job.id) + 1} of {len(pending)} waiting in {job.partition}")
    if job.start not in ("", "N/A"):
        words.append(f"expected to start {job.start}")
    return ", ".join(words)


def encode(tags: Mapping[str, str]) -> str:
    text = json.dumps(dict(tags), separators=(",", ":"), sort_keys=True)
    comment = base64.urlsafe_b64encode(text.encode()).decode()
    if len(comment) > MAX_COMMENT:
        raise SlurmError(f"the tags of a node are too long for a job's comment: {text}")
    return comment


def decode(comment: str) -> dict[str, str]:
    """The tags in a comment; none if somebody wrote another comment."""
    try:
        tags = json.loads(base64.urlsafe_b64decode(comment.encode()))
    except (binascii.Error, ValueError):
        return {}
    return tags if isinstance(tags, dict) else {}
