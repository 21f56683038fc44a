"""Starting and ending a player's process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity.client.threads import LastingThread

WRAPPER = Path(__file__).with_name("exec_with_parent.py")
ENDINGS = ("", ".x86_64", ".x86")  # of Linux builds; a path may leave them out
MOST_OUTPUT = 1 << 20  # bytes kept of what a player prints
START_SECONDS = 30


def find_executable(file_name: str) -> Path:
    """The file that ``file_name`` means; an OptionError says what is wrong with it."""
    given = Path(file_name).expanduser().absolute()
    found = next((p for e in ENDINGS if (p := Path(f"{given}{e}")).is_file()), None)
    if found is None and given.is_dir():
        inside = sorted(p.name for p in given.iterdir() if p.suffix in ENDINGS[1:])
        hint = f"; it holds {', '.join(inside)}" if inside else ""
        raise OptionError("file_name", f"{given} is a directory, not an executable{hint}")
    if found is None:
        beside = [p.name for p in given.parent.iterdir()] if given.parent.is_dir() else []
        raise OptionError("file_name", f"{given} does not exist.{did_you_mean(given.name, beside)}")
    if not os.access(found, os.X_OK):
        raise OptionError("file_name", f'{found} is not executable: run "chmod +x {found}"')
    return found


class PlayerProcess:
    """A player that does not outlive this process, in a process group of its own."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None):
        self._output: IO[bytes] = tempfile.TemporaryFile(mode="a+b", buffering=0)  # noqa: SIM115
        try:
            self._process = _in_lasting_thread(lambda: self._start(command, environment))
        except BaseException:
            self._output.close()
            raise
        self.pid = self._process.pid

    def _start(self, command: Sequence[str], environment: Mapping[str, str] | None):
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", WRAPPER, str(os.getpid()), str(writer), *command],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(writer,),
                start_new_session=True,  # Ctrl-C in the terminal is for the trainer to answer
                env=environment,
            )
            os.close(writer)
            writer = None
            said = os.read(reader, 16) if select.select([reader], [], [], START_SECONDS)[0] else b""
        finally:
            os.close(reader)
            if writer is not None:
                os.close(writer)
        if said:
            process.wait()
            reason = os.strerror(int(said)).lower()
            raise OptionError("file_name", f"{command[0]} cannot be run: {reason}")
        return process

    def ended(self) -> str | None:
        """How the process ended and the last line that it printed, or None while it lives."""
        # The process is looked at but not yet collected: until `end()` its number stays its own,
        # and killing its group cannot hit a stranger.
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            found = os.waitid(os.P_PID, self.pid, look)
        except ChildProcessError:  # collected by somebody else
            return "ended"
        if found is None:
            return None
        text = f"exited with code {found.si_status}"
        if found.si_code != os.CLD_EXITED:
            text = f"was ended by {signal.Signals(found.si_status).name}"
        last = self.last_line()
        return f"{text}: {last}" if last else text

    def last_line(self) -> str:
        """The last line of the player's output, shortened."""
        size = os.fstat(self._output.fileno()).st_size
        tail = os.pread(self._output.fileno(), 2000, max(0, size - 2000))
        lines = tail.decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:300] if lines else ""

    def trim_output(self) -> None:
        """Forget what was printed when it becomes much."""
        if os.fstat(self._output.fileno()).st_size > MOST_OUTPUT:
            self._output.truncate(0)

    def end(self, patience: float = 0.0, wait: Callable[[float], None] = time.sleep) -> None:
        """Wait ``patience`` seconds for the end, then kill the player and all that it started."""
        deadline = time.monotonic() + patience
        while self.ended() is None and time.monotonic() < deadline:
            wait(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()


# The kernel sends the death signal when the *thread* that started the player ends, so players are
# started by a thread that lives as long as the process.
_launcher: tuple[int, LastingThread] | None = None


def _in_lasting_thread(function: Callable[[], Any]) -> Any:
    global _launcher
    if _launcher is None or _launcher[0] != os.getpid():  # a fork has no threads
        _launcher = os.getpid(), LastingThread("unity-launcher")
    return _launcher[1].submit(function).result()
