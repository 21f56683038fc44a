"""The newest checkpoint of a trial, drawn when it appears."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STATE = "learner_group/learner/state.pkl"
PATIENCE = 600.0  # seconds for one drawing, on a machine that has much else to do
SHARE = 0.2  # of the time may be spent on drawing: a run may save in every iteration
TRIES = 3  # of a checkpoint that cannot be read: it may still be being written


class Galleries:
    """What was found in the newest checkpoint."""

    command: Sequence[str] = (sys.executable, "-m", "rllib_conspec.report.live.drawing")

    def __init__(self, trial: Path):
        self.trial = trial
        self.shown: dict[str, Any] | None = None  # what the page is told
        self._seen: tuple[str, int] | None = None  # checkpoint, and when its state was written
        self._tries = 0  # of it that failed
        self._titles: set[str] | None = None  # of rows in the checkpoint before
        self._not_before = 0.0

    def begins(self) -> bool:
        """Whether the first drawing of all is about to begin; the page says so meanwhile."""
        newest = newest_checkpoint(self.trial)
        if newest is None or self.shown is not None:
            return False
        line = f"{newest[0]} is being drawn …"
        self.shown = {"checkpoint": "", "lines": [line], "galleries": [], "notes": []}
        return True

    async def look(self) -> bool:
        """Draw what is new; whether there is something else to show now."""
        newest = newest_checkpoint(self.trial)
        if newest is None or time.monotonic() < self._not_before:
            return False
        if newest != self._seen:
            self._seen, self._tries = newest, 0
        elif self._tries in (0, TRIES):  # drawn, or given up
            return False
        began = time.monotonic()
        told = await self._drawn()
        self._not_before = time.monotonic() + (time.monotonic() - began) * (1 / SHARE - 1)
        if told["checkpoint"] == newest[0]:
            self._tries = 0
        else:  # it cannot be read, and an earlier one was drawn, or none
            self._tries += 1
            if self._tries < TRIES:
                return False
        self._show(told)
        return True

    async def _drawn(self) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *self.command,
            str(self.trial),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                answer, errors = await process.communicate()
            return json.loads(answer)
        except TimeoutError:
            trouble = f"drawing what was found takes more than {PATIENCE:.0f} s"
        except ValueError:  # it broke down before it could answer
            last = errors.decode(errors="replace").strip().splitlines()[-1:]
            why = " ".join(last) or f"exit code {process.returncode}"
            trouble = f"what was found cannot be drawn: {why}"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return {"checkpoint": "", "lines": [], "galleries": [], "notes": [trouble]}

    def _show(self, told: dict[str, Any]) -> None:
        rows = [row for gallery in told["galleries"] for row in gallery["rows"]]
        for row in rows:
            row["new"] = self._titles is not None and _first(row) not in self._titles
        self._titles = {_first(row) for row in rows}
        self.shown = told


def _first(row: dict[str, Any]) -> str:
    """Of a title; its end may change when more is known: `thing 3`, then `thing 3: door opened`."""
    return row["title"].partition(":")[0]


def newest_checkpoint(trial: Path) -> tuple[str, int] | None:
    """Name of the newest checkpoint with a learner's state in it, and when that was written."""
    found = []
    for directory in trial.glob("checkpoint_*"):
        try:
            found.append((directory.name, (directory / STATE).stat().st_mtime_ns))
        except OSError:
            continue  # not written yet, or just deleted
    return max(found, default=None)
