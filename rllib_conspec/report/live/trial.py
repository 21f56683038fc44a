"""One trial, as everybody who watches it sees it: looked at once for all of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from rllib_conspec.report.live.galleries import Galleries
from rllib_conspec.report.live.history import ITERATION, History, number
from rllib_conspec.report.live.models import Models
from rllib_conspec.report.live.tail import News, Tail
from rllib_conspec.report.trials import failure

PERIOD = 0.5  # seconds between two looks
WAITING = 100  # messages: a browser that is further behind is dropped, and connects anew
FIRST = 3.0  # seconds in which the page may be painted before torch is imported
Message = tuple[str, str]  # event and JSON


class Trial:
    """Follows the files of a trial while somebody watches."""

    def __init__(self, path: Path, name: str):
        self.path = path
        self.name = name
        self.galleries = Galleries(path)
        self._tail = Tail(path / "result.json")
        self._history = History()
        self._models = Models()
        self._state = ""  # what is wrong with the run, in a line
        self._damaged = 0
        self._watchers: set[asyncio.Queue[Message | None]] = set()
        self._tasks: list[asyncio.Task] = []
        self._ready = asyncio.Event()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[asyncio.Queue[Message | None]]:
        """The messages for one browser, beginning with all there is; None: too far behind."""
        if not self._tasks:
            looks = (self._follow(), self._draw(), self._ask())
            self._tasks = [asyncio.create_task(look) for look in looks]
        queue: asyncio.Queue[Message | None] = asyncio.Queue(WAITING)
        await self._ready.wait()
        queue.put_nowait(self._all())
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what is looked at --------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._look()
            self._ready.set()
            await asyncio.sleep(PERIOD)

    async def _look(self) -> None:
        try:
            # In a thread: the first look at a long run takes a while.
            news = await asyncio.to_thread(self._tail.read)
            error = failure(self.path)
            state = f"failed: {error}" if error else ""
        except FileNotFoundError:
            there = self.path.is_dir()
            state = "no result yet: waiting for the first iteration" if there else "the run is gone"
            news = News()
        except OSError as error:
            state, news = f"result.json cannot be read: {error.strerror}", News()
        if state != self._state:
            self._state = state
            self._tell("state", {"state": state})
        if news.anew or news.rows or news.damaged:
            self._take(news)

    def _take(self, news: News) -> None:
        """Add rows, and tell what is new of them, or everything where curves change as a whole."""
        if news.anew:
            self._history, self._damaged = History(self._history.models), 0
        history = self._history
        count, before = len(history), history.layout
        history.add(news.rows)
        if news.sampled and news.rows:
            last = history.columns[ITERATION][-1] or len(history)
            history.every = max(1, round(last / len(history)))
        if news.damaged:
            self._damaged += news.damaged
            lines = "a line" if self._damaged == 1 else f"{self._damaged} lines"
            history.say("damaged", f"{lines} of result.json cannot be read and left out")
        if history.thin() or news.anew or count == 0 or history.layout != before:
            self._tell(*self._all_of())
        else:
            self._tell("rows", {"columns": history.since(count), **self._standing()})

    async def _draw(self) -> None:
        await self._ready.wait()
        while True:
            if self._watchers and self.galleries.begins():
                self._tell("found", self.galleries.shown)
            if self._watchers and await self.galleries.look():
                self._tell("found", self.galleries.shown)
            await asyncio.sleep(PERIOD)

    async def _ask(self) -> None:
        """Find the classes of reward models that are new."""
        await asyncio.sleep(FIRST)
        while True:
            row = self._history.last
            if row and self._models.unknown(row):
                await asyncio.to_thread(self._models.find, row)
                if self._models.trouble:
                    self._history.say("damaged", self._models.trouble)
                if not set(self._models.sections(row)) <= set(self._history.models):
                    self._tail = Tail(self._tail.path)  # their metrics were left out so far
                    self._history = History(self._models.sections(row))
                else:
                    self._tell("rows", {"columns": {}, **self._standing()})
            await asyncio.sleep(PERIOD)

    # --- what is told -------------------------------------------------------------------------

    def _standing(self) -> dict[str, Any]:
        history, row = self._history, self._history.last
        written = number(row.get("timestamp"))
        return {
            "facts": history.facts() | self._models.cells(row),
            "log": history.log,
            "begun": history.begun,
            "every": history.every,
            "done": row.get("done") is True,
            "age": None if written is None else time.time() - written,
            "took": number(row.get("time_this_iter_s")),
        }

    def _all_of(self) -> tuple[str, dict[str, Any]]:
        columns = self._history.since(0)
        told = {"charts": self._history.layout, "columns": columns, "state": self._state}
        return "start", told | {"found": self.galleries.shown} | self._standing()

    def _all(self) -> Message:
        event, told = self._all_of()
        return event, json.dumps(told, allow_nan=False)

    def _tell(self, event: str, told: Any) -> None:
        if not self._watchers:
            return
        message = (event, json.dumps(told, allow_nan=False))
        for queue in list(self._watchers):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._watchers.discard(queue)
                queue.get_nowait()
                with suppress(asyncio.QueueFull):
                    queue.put_nowait(None)
