"""Training runs that outlive the job they run in: started once, resumed after every restart.

A run is a directory on the shared file system. The client writes `run.json`; the head's supervisor
starts the command, writes `status.json`, and appends the output to `log`.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rllib_conspec.slurm.directory import read_json, write_private

# A resumed run keeps the settings it began with; `rllib train --resume` refuses these.
_ONLY_AT_THE_START = ("--config", "--stop", "--restore", "--num-samples", "--resume")
_WITHOUT_VALUE = ("--resume",)
PROGRAM = (sys.executable, "-m", "rllib_conspec.cli.main", "train")
# So many starts in a row that save nothing, and the run is given up.
MAX_FRUITLESS = 3


@dataclass
class Run:
    """One `rllib train ARGUMENTS`, with the directories that its results go to."""

    arguments: list[str]
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


def resume_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments with which the same run goes on."""
    words, kept = list(arguments), []
    while words:
        word = words.pop(0)
        name, has_value, _ = word.partition("=")
        if name not in _ONLY_AT_THE_START:
            kept.append(word)
        elif not has_value and name not in _WITHOUT_VALUE and words:
            words.pop(0)
    return [*kept, "--resume"]


class Driver:
    """The process of a run on the head node."""

    def __init__(
        self,
        directory: Path,
        job: str,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        own_log: bool = True,
        program: Sequence[str] = PROGRAM,
    ):
        self.directory = directory
        self.run = Run.load(directory)
        self.status = Status.of(directory)
        self._say = say
        self._interrupted = False
        arguments = self.run.arguments
        again = self.status.first_start > 0
        if again and self._saved_since(self.status.first_start):
            arguments = resume_arguments(arguments)
        self._start_time = time.time()
        self.status.job = job
        self.status.first_start = self.status.first_start or self._start_time
        self._set_state("running")
        say(f"{'again: ' if again else ''}rllib train {' '.join(arguments)}")
        # Without a log of its own, the output goes where the supervisor's goes.
        with open(directory / "log" if own_log else os.dup(1), "ab") as log:
            self._process = subprocess.Popen(
                [*program, *arguments],
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
