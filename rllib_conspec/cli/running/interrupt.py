"""Ctrl-C and SIGTERM: save every running trial, stop, and leave a run that can be resumed.

Tune marks trials that it stops as finished, and finished trials are not resumed. A *paused* trial
is saved, stopped and stays unfinished. So after an interrupt the scheduler pauses every trial that
reports a result and starts no other; when all are saved, SIGUSR1 asks `tune.run` to end its loop.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# `timeout` signals the command and then its group: two signals that are one request.
SAME_REQUEST_S = 0.5


@contextlib.contextmanager
def handling(handler: Any) -> Iterator[None]:
    """Both signals go to `handler` inside, also where they were ignored before.

    Shells start the background commands of a script with SIGINT ignored, and children inherit it.
    """
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def exit_with(work: Callable[[], int]) -> NoReturn:
    """Leave with the exit code of `work`, or, interrupted outside of training, with 130."""
    try:
        with handling(signal.default_int_handler):
            sys.exit(work())
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # nothing has been trained yet that could be lost


class Interrupt:
    """Remembers that the user asked to stop. A second request ends the process at once."""

    def __init__(self) -> None:
        self._requested_at: float | None = None
        self._ending = False
        self._announced = False

    @property
    def requested(self) -> bool:
        return self._requested_at is not None

    def handle(self, number: int, frame: Any) -> None:
        """The signal handler."""
        if self._requested_at is None:
            self._requested_at = time.monotonic()
        elif time.monotonic() - self._requested_at > SAME_REQUEST_S:
            os._exit(130)

    def announce(self, say: Callable[[str], None]) -> None:
        """Say once that the request was heard. Not in the handler: it may interrupt a print."""
        if self.requested and not self._announced:
            self._announced = True
            say("Stopping after this iteration to save. Press Ctrl-C again to quit at once.")

    def end_tune_loop(self) -> None:
        if not self._ending:
            self._ending = True
            os.kill(os.getpid(), signal.SIGUSR1)


def pausing(scheduler: Any, interrupt: Interrupt) -> Any:
    """Make a Tune scheduler pause what runs, and start nothing, once `interrupt` is requested."""
    on_trial_result = scheduler.on_trial_result
    choose_trial_to_run = scheduler.choose_trial_to_run

    def pause_or_go_on(controller: Any, trial: Any, result: dict) -> str:
        if interrupt.requested:
            return scheduler.PAUSE
        return on_trial_result(controller, trial, result)

    def choose_or_wait(controller: Any) -> Any:
        return None if interrupt.requested else choose_trial_to_run(controller)

    scheduler.on_trial_result = pause_or_go_on
    scheduler.choose_trial_to_run = choose_or_wait
    return scheduler
