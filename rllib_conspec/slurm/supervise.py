"""What the programs of a head job and of a train job do while Ray runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rllib_conspec.slurm.allocation import SECONDS_TO_SAVE, Allocation, Notice
from rllib_conspec.slurm.ray_node import RayNode
from rllib_conspec.slurm.runs import Driver, Status

POLL_SECONDS = 0.5


def say(line: str) -> None:
    """One line into the job's log, with the time."""
    print(time.strftime("%Y-%m-%d %H:%M:%S"), line, flush=True)


class Supervisor:
    """Starts the runs of a directory on a Ray, and brings them to safety when the job must stop."""

    def __init__(
        self,
        job: Allocation,
        ray: RayNode,
        runs: Path,
        environment: Mapping[str, str],
        own_logs: bool = True,
    ):
        self._job = job
        self._ray = ray
        self._runs = runs
        self._environment = environment
        self._own_logs = own_logs
        self._drivers: dict[Path, Driver] = {}

    def unfinished(self) -> list[Path]:
        """New runs and those of this job; what an earlier cluster left unfinished stays so."""
        found = [file.parent for file in sorted(self._runs.glob("*/run.json"))]
        states = [(directory, Status.of(directory)) for directory in found]
        ours = ("", self._job.id)
        return [path for path, status in states if not status.over and status.job in ours]

    def watch(self, until: Callable[[], bool]) -> Notice | None:
        """Run what there is to run, until `until()` or a notice; SystemExit when Ray has died."""
        while not until():
            if notice := self._job.notice():
                return notice
            if not self._ray.alive:
                say(f"Ray has ended: {self._ray.last_words()}")
                self._ray.keep_logs()
                self._save(0)
                raise SystemExit(1)
            for directory in self.unfinished():
                if directory not in self._drivers:
                    self._drivers[directory] = Driver(
                        *(directory, self._job.id, self._environment, say),
                        own_log=self._own_logs,
                    )
            for directory, driver in list(self._drivers.items()):
                if not driver.runs():
                    del self._drivers[directory]
            time.sleep(POLL_SECONDS)
        return None

    def stop(self, notice: Notice) -> bool:
        """Save all runs; whether the job should go back into the queue."""
        say(f"{notice.value}; saving")
        began = time.monotonic()
        drivers = self._save(SECONDS_TO_SAVE[notice])
        say(f"saved in {time.monotonic() - began:.0f} s")
        for driver in drivers:
            # Only time limits count: a preemption is not the run's fault.
            if notice is Notice.TIME_LIMIT and driver.hopeless:
                driver.give_up("the time limit is too short: nothing was saved in three starts")
        if notice is Notice.PREEMPTED:
            return True
        return notice is Notice.TIME_LIMIT and bool(self.unfinished())

    def _save(self, seconds: float) -> list[Driver]:
        drivers = list(self._drivers.values())
        for driver in drivers:
            driver.interrupt()
        end = time.monotonic() + seconds
        # Nothing can be saved without Ray: when a job is cancelled, Slurm ends it at once.
        while any(driver.runs() for driver in drivers) and self._ray.alive:
            if self._job.notice() is Notice.ENDING:  # cuts a long saving short
                end = min(end, time.monotonic() + SECONDS_TO_SAVE[Notice.ENDING])
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        for driver in drivers:
            driver.kill()
            driver.runs()  # notes how it ended
        return drivers
