"""Training runs that outlive the job they run in: started once, resumed after every restart.

A run is a directory on the shared file system. The client writes `run.json`, with one command to
begin and one to go on; the head's supervisor starts them as they are, writes `status.json`, and
appends the output to `log`.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rllib_conspec.slurm.directory import read_json, write_private

# So many starts in a row that save nothing, and the run is given up.
MAX_FRUITLESS = 3


@dataclass
class Run:
    """What to start, and the directories that its results go to.

    The commands are run in the job, with its PATH: `python` is the one that the job uses itself.
    """

    command: list[str]
    resume_command: list[str]  # goes on with what the first one has saved
    cwd: str
    results: list[str]  # <storage path>/<experiment name>, without the time that may follow

    def save(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(directory / "run.json", json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> Run:
        return cls(**json.loads((directory / "run.json").read_text()))


@dataclass
class Status:
    """How far a run has come."""

    state: str = "waiting"  # running, interrupted, finished
    code: int | None = None
    job: str = ""  # that began it; a requeued job keeps its id
    first_start: float = 0.0
    fruitless: int = 0  # starts in a row after which nothing new was saved

    @classmethod
    def of(cls, directory: Path) -> Status:
        return cls(**(read_json(directory / "status.json") or {}))

    def save(self, directory: Path) -> None:
        write_private(directory / "status.json", json.dumps(asdict(self)))

    @property
    def over(self) -> bool:
        return self.state == "finished"


class Driver:
    """The process of a run on the head node."""

    def __init__(
        self,
        directory: Path,
        job: str,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        own_log: bool = True,
    ):
        self.directory = directory
        self.run = Run.load(directory)
        self.status = Status.of(directory)
        self._say = say
        self._interrupted = False
        again = self.status.first_start > 0
        resumes = again and self._saved_since(self.status.first_start)
        command = self.run.resume_command if resumes else self.run.command
        self._start_time = time.time()
        self.status.job = job
        self.status.first_start = self.status.first_start or self._start_time
        self._set_state("running")
        say(f"{'again: ' if again else ''}{shlex.join(command)}")
        # Without a log of its own, the output goes where the supervisor's goes.
        with open(directory / "log" if own_log else os.dup(1), "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.run.cwd,
                env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def runs(self) -> bool:
        """Whether it goes on. The first call after its end notes how it ended."""
        code = self._process.poll()
        if code is None:
            return True
        if self.status.state == "running":
            if self._interrupted and code != 0:
                self._note_interruption()
            else:
                self._set_state("finished", code)
                self._say(f"run {self.directory.name} ended with exit code {code}")
        return False

    def interrupt(self) -> None:
        """Ask it to save and stop, as Ctrl-C would."""
        # Also if it has ended: Slurm signals a job's processes together, so it may have been first.
        self._interrupted = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _note_interruption(self) -> None:
        progress = self._saved_since(self._start_time)
        self.status.fruitless = 0 if progress else self.status.fruitless + 1
        self._set_state("interrupted")

    @property
    def hopeless(self) -> bool:
        return self.status.fruitless >= MAX_FRUITLESS

    def give_up(self, reason: str) -> None:
        self._say(f"run {self.directory.name}: {reason}")
        with (self.directory / "log").open("a") as log:
            log.write(f"rllib: {reason}\n")
        self._set_state("finished", 1)

    def _saved_since(self, moment: float) -> bool:
        """Whether Tune has saved a state, or the run a checkpoint, since then."""
        for results in map(Path, self.run.results):
            name = glob.escape(results.name)
            for directory in (name, f"{name}_[0-9][0-9][0-9][0-9]-*"):  # a time may be added
                for file in ("experiment_state-*.json", "*/checkpoint_*"):
                    found = results.parent.glob(f"{directory}/{file}")
                    if any(path.stat().st_mtime >= moment for path in found):
                        return True
        return False

    def _set_state(self, state: str, code: int | None = None) -> None:
        self.status.state, self.status.code = state, code
        self.status.save(self.directory)
