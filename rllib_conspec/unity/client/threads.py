"""A thread that works through what it is given, as long as the process lives."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class LastingThread:
    """Like an executor with one thread, except that the thread is there until the very end.

    ``ThreadPoolExecutor`` ends its threads when the interpreter begins to exit, before the
    functions of ``atexit`` are called.
    """

    def __init__(self, name: str):
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True).start()

    def submit(self, function: Callable, *args: Any) -> Future:
        """Run the function after all that were given before it."""
        future: Future = Future()
        self._jobs.put((future, function, args))
        return future


def _work(jobs: queue.SimpleQueue) -> None:
    while True:
        future, function, args = jobs.get()
        try:
            future.set_result(function(*args))
        except BaseException as error:
            future.set_exception(error)
        del future, function, args  # waiting must not keep the last job alive
