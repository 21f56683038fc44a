"""A thread that works through what it is given and never holds up the end of the program."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Worker:
    """Like an executor with one thread.

    ``ThreadPoolExecutor`` waits for its threads when the interpreter exits. One that waits for a
    player's next message would wait for ever.
    """

    def __init__(self, name: str):
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True).start()

    def submit(self, function: Callable, *args: Any, **kwargs: Any) -> Future:
        """Run the function after all that were given before it."""
        future: Future = Future()
        self._jobs.put((future, function, args, kwargs))
        return future

    def shutdown(self) -> None:
        """End the thread when it has done its work."""
        self._jobs.put(None)


def _work(jobs: queue.SimpleQueue) -> None:
    while (job := jobs.get()) is not None:
        future, function, args, kwargs = job
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        del job, future, function, args, kwargs  # waiting must not keep the last job alive
