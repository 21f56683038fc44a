"""The newest checkpoint of a trial, drawn when it appears."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STATE = "learner_group/learner/state.pkl"
PATIENCE = 180.0  # seconds for one drawing
SHARE = 0.2  # of the time may be spent on drawing: a run may save in every iteration
TRIES = 3  # of a checkpoint that cannot be read: it may still be being written
DRAW = (sys.executable, "-m", "rllib_conspec.report.live.drawing")


class Galleries:
    """What was found in the newest checkpoint, and the pictures of it."""

    def __init__(self, trial: Path, command: Sequence[str] = DRAW):
        self.trial = trial
        self.command = command
        self.shown: dict[str, Any] | None = None  # what the page is told
        self.pictures: dict[str, bytes] = {}  # name → PNG
        self._seen: tuple[str, int] | None = None  # checkpoint and time of its state
        self._tries = 0
        self._titles: set[str] | None = None  # of rows in the checkpoint before
        self._current: set[str] = set()  # pictures that are shown now
        self._not_before = 0.0

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
        told = await self._drawn(newest[0])
        self._not_before = time.monotonic() + (time.monotonic() - began) * (1 / SHARE - 1)
        if "error" in told:
            self._tries += 1
            if self._tries < TRIES:
                return False
            told = {"lines": [], "galleries": [], "notes": [told["error"]]}
        else:
            self._tries = 0
        self._show(newest[0], told)
        return True

    async def _drawn(self, name: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *self.command,
            str(self.trial / name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                answer, errors = await process.communicate()
            return json.loads(answer)
        except TimeoutError:
            return {"error": f"{name}: drawing it takes more than {PATIENCE:.0f} s."}
        except ValueError:  # it broke down before it could answer
            last = errors.decode(errors="replace").strip().splitlines()[-1:]
            return {"error": f"{name}: cannot be drawn: {' '.join(last) or process.returncode}"}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _show(self, name: str, told: dict[str, Any]) -> None:
        rows = [row for gallery in told["galleries"] for row in gallery["rows"]]
        pictures = {}
        for row in rows:
            # A name may come later than the row: `prototype 3`, then `prototype 3: key_taken`.
            row["new"] = self._titles is not None and _first(row) not in self._titles
            for frame in row["frames"]:
                png = base64.b64decode(frame.pop("png"))
                frame["name"] = hashlib.sha256(png).hexdigest()[:24]
                pictures[frame["name"]] = png
        # A browser may still be asking for the ones before.
        self.pictures = {name: self.pictures[name] for name in self._current} | pictures
        self._current = set(pictures)
        self._titles = {_first(row) for row in rows}
        self.shown = {"checkpoint": name, **told}


def _first(row: dict[str, Any]) -> str:
    return row["title"].partition(":")[0]


def newest_checkpoint(trial: Path) -> tuple[str, int] | None:
    """Name of the newest checkpoint with a learner's state in it, and when that was written."""
    found = []
    for directory in trial.glob("checkpoint_*"):
        try:
            found.append(((directory / STATE).stat().st_mtime_ns, directory.name))
        except OSError:
            continue  # not written yet, or just deleted
    return (max(found)[1], max(found)[0]) if found else None
