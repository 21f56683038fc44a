"""The trials below a directory: of one trial, an experiment, or all results."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rllib_conspec.errors import UserError
from rllib_conspec.report.live.trial import Trial

MARKS = ("result.json", "params.json")  # Tune writes these into every trial
DEPTH = 2
FRESH = 3.0  # seconds for which a listing holds


class Run:
    """What is watched."""

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser().absolute()
        self.title = str(path)
        try:
            there = self.path.exists()
            if there and self.path.is_dir():
                os.listdir(self.path)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}.") from error
        if not there:
            raise UserError(
                f"{path}: no such directory. Name one of a run: results/NAME, or results for all."
            )
        if not self.path.is_dir():
            raise UserError(f"{path}: a run is a directory, this is a file.")
        if self.path.name.startswith("checkpoint_"):
            self.path = self.path.parent
        self._trials: dict[str, Trial] = {}
        self._listed: list[str] = []
        self._when = -FRESH

    def names(self) -> list[str]:
        """Of all trials, the one that wrote last first."""
        if time.monotonic() - self._when >= FRESH:
            self._listed, self._when = self._list(), time.monotonic()
        return self._listed

    def _list(self) -> list[str]:
        written: dict[str, float] = {}
        for depth in range(DEPTH + 1):
            for mark in MARKS:
                for file in self.path.glob("*/" * depth + mark):
                    name = file.parent.relative_to(self.path).as_posix()
                    try:
                        when = file.stat().st_mtime
                    except OSError:  # just deleted
                        continue
                    written[name] = max(when, written.get(name, 0.0))
        return sorted(written, key=lambda name: (-written[name], name))

    def find(self, name: str | None) -> Trial | None:
        """A trial that is listed; without a name the one that wrote last."""
        names = self.names()
        name = names[0] if name is None and names else name
        # Only what was listed, and what is being watched though it is gone.
        if name not in names and name not in self._trials:
            return None
        if name not in self._trials:
            self._trials[name] = Trial(self.path / name, name)
        return self._trials[name]

    async def close(self) -> None:
        for trial in self._trials.values():
            await trial.close()
