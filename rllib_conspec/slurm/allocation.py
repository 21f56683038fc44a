"""The Slurm job that a program runs in: told of its end in time, and requeued."""

from __future__ import annotations

import enum
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import NoReturn

from rllib_conspec.slurm import jobs


class Notice(enum.Enum):
    """Why a job has to stop."""

    PREEMPTED = "preempted: another job takes these nodes"
    TIME_LIMIT = "the time limit is near"
    ENDING = "cancelled or requeued"


# How long saving may take. A preempted job is ended by Slurm when its grace time is over; the
# others are killed two minutes after the warning, and KillWait (30 s by default) after the end,
# in which Ray has to be ended and its directory removed, too.
SECONDS_TO_SAVE = {Notice.PREEMPTED: 600.0, Notice.TIME_LIMIT: 90.0, Notice.ENDING: 10.0}
# The step that stands by is started again if it ended for another reason, but not all the time.
SENTINEL_SECONDS = 60.0


class Allocation:
    """Watches for the end of the job that this process, begun by its batch script, is in.

    Slurm tells this process of a time limit (USR1, asked for with --signal) and of its end
    (TERM), but of a preemption it tells only the job's steps. So there is a step that does nothing
    but sleep: when it is ended while the job runs on, and Slurm has noted a preemption, the grace
    time has begun.
    """

    def __init__(self, say: Callable[[str], None]):
        self.id = os.environ["SLURM_JOB_ID"]
        self.restarts = int(os.environ.get("SLURM_RESTART_COUNT", 0))
        self._say = say
        self._signals: set[int] = set()
        self._told_of_end: bool | None = None  # whether the sentinel ended because of a preemption

    def __enter__(self) -> Allocation:
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda n, frame: self._signals.add(n))
        self._start_sentinel()
        return self

    def __exit__(self, *_: object) -> None:
        self._sentinel.terminate()
        self._sentinel.wait()

    def _start_sentinel(self) -> None:
        self._sentinel_start = time.monotonic()
        self._sentinel = subprocess.Popen(
            [*step(self.id), "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=jobs.clean_environment(),
            start_new_session=True,
        )

    def notice(self) -> Notice | None:
        """What Slurm has said so far, the most urgent first."""
        if signal.SIGTERM in self._signals:
            return Notice.ENDING
        if signal.SIGUSR1 in self._signals:
            return Notice.TIME_LIMIT
        if self._sentinel.poll() is not None:
            if self._told_of_end is None:
                self._told_of_end = self._preempted()
            if self._told_of_end:
                return Notice.PREEMPTED
            if time.monotonic() - self._sentinel_start > SENTINEL_SECONDS:
                self._told_of_end = None
                self._start_sentinel()
        return None

    def _preempted(self) -> bool:
        try:
            return jobs.show(self.id).get("PreemptTime", "None") not in ("None", "")
        except jobs.SlurmError as error:
            self._say(f"cannot ask Slurm about a preemption: {error}")
            return False

    def requeue(self) -> NoReturn:
        """Back into the queue. Leaves the process when Slurm ends it."""
        if signal.SIGTERM not in self._signals:  # else Slurm has decided already
            try:
                jobs.requeue(self.id)
            except jobs.SlurmError as error:
                self._say(f"cannot be requeued: {error}")
                raise SystemExit(1) from error
        # A program that ends by itself before Slurm has ended it counts as finished.
        end = time.monotonic() + 120
        while signal.SIGTERM not in self._signals and time.monotonic() < end:
            time.sleep(0.2)
        raise SystemExit(0)


def step(job_id: str) -> list[str]:
    """`srun` of a small step in a job, beside whatever runs there already."""
    words = ["srun", f"--jobid={job_id}", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0"]
    return [*words, "--quiet"]
