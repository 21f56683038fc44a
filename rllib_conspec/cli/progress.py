"""Live progress: a table on a terminal, one line per iteration anywhere else."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

STEPS = "num_env_steps_sampled_lifetime"
# Speed and time left are averages over this many iterations.
RECENT = 10


def metric(result: Mapping[str, Any], path: str) -> Any:
    """`result["a"]["b"]` for "a/b"; None when it is absent or not a number."""
    value: Any = result
    for part in path.split("/"):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    if isinstance(value, bool) or not hasattr(value, "__float__") or math.isnan(float(value)):
        return None
    return float(value)


class TrialProgress:
    """What is known of one trial: its latest result and its recent speed."""

    def __init__(self, name: str, stop: Mapping[str, float]):
        self.name = name
        self.stop = stop
        self.status = "starting"
        self.result: Mapping[str, Any] = {}
        # (seconds of training, iterations, environment steps) after each recent iteration
        self._history: deque[tuple[float, float, float]] = deque(maxlen=RECENT + 1)

    def update(self, result: Mapping[str, Any]) -> None:
        self.status = "running"
        self.result = result
        seconds = metric(result, "time_total_s") or 0.0
        steps = metric(result, STEPS) or metric(result, f"env_runners/{STEPS}") or 0.0
        iteration = metric(result, "training_iteration") or 0.0
        if not self._history:
            # The state before the first iteration of this process, from what that one says.
            spent = metric(result, "time_this_iter_s") or 0.0
            sampled = metric(result, "env_runners/num_env_steps_sampled") or 0.0
            self._history.append((seconds - spent, iteration - 1, steps - sampled))
        self._history.append((seconds, iteration, steps))

    def _gained(self) -> tuple[float, float, float]:
        """Seconds, iterations and steps over the recent iterations."""
        if len(self._history) < 2:
            return 0.0, 0.0, 0.0
        first, last = self._history[0], self._history[-1]
        return tuple(b - a for a, b in zip(first, last, strict=True))

    def steps_per_second(self) -> float | None:
        seconds, _, steps = self._gained()
        return steps / seconds if seconds > 0 and steps > 0 else None

    def seconds_left(self) -> float | None:
        """Until the first of the stop criteria whose pace is known; None when none is."""
        seconds, iterations, steps = self._gained()
        now = {
            "training_iteration": (iterations, metric(self.result, "training_iteration")),
            STEPS: (steps, self._history[-1][2] if self._history else None),
            "time_total_s": (seconds, metric(self.result, "time_total_s")),
        }
        left = [
            (self.stop[key] - done) * seconds / gained
            for key, (gained, done) in now.items()
            if key in self.stop and done is not None and gained > 0
        ]
        return max(0.0, min(left)) if left else None

    def cells(self) -> dict[str, str]:
        """What to show, by column; absent metrics are left out."""
        result, cells = self.result, {}
        iteration = metric(result, "training_iteration")
        if iteration is not None:
            end = self.stop.get("training_iteration")
            cells["iteration"] = f"{iteration:.0f}" + (f"/{end:.0f}" if end else "")
        mean = metric(result, "env_runners/episode_return_mean")
        if mean is not None:
            cells["return"] = f"{mean:.3g}"
        success = metric(result, "env_runners/success_rate")
        if success is not None:
            cells["success"] = f"{success:.0%}"
        memory = metric(result, "conspec/successes")
        if memory is not None:
            cells["in memory"] = f"{memory:.0f}"
        frozen = metric(result, "conspec/frozen")
        if frozen is not None:
            total = metric(result, "conspec/prototypes")
            cells["frozen"] = f"{frozen:.0f}" + (f"/{total:.0f}" if total else "")
        speed = self.steps_per_second()
        if speed is not None:
            cells["steps/s"] = f"{speed:,.0f}"
        left = self.seconds_left()
        if left is not None:
            cells["left"] = duration(left)
        return cells


COLUMNS = ("iteration", "return", "success", "in memory", "frozen", "steps/s", "left")


class Progress:
    """Shows all trials of one experiment. Use as a context manager."""

    def __init__(self, console: Console, title: str):
        self.console = console
        self.title = title
        self.trials: dict[str, TrialProgress] = {}
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def started(self, trial_id: str, name: str, stop: Mapping[str, float]) -> None:
        self.trials.setdefault(trial_id, TrialProgress(name, stop))
        self._refresh()

    def result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        trial = self.trials[trial_id]
        trial.update(result)
        if self._live:
            self._refresh()
        else:
            self.say(plain_line(trial))

    def ended(self, trial_id: str, status: str) -> None:
        if trial_id in self.trials:
            self.trials[trial_id].status = status
            self._refresh()

    def say(self, line: str) -> None:
        """Print a line above the table."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _refresh(self) -> None:
        if self._live:
            self._live.update(self.table(), refresh=True)

    def table(self) -> Table:
        rows = [(trial, trial.cells()) for trial in self.trials.values()]
        shown = [column for column in COLUMNS if any(column in cells for _, cells in rows)]
        table = Table(title=self.title, title_justify="left", box=None, pad_edge=False)
        for column in ("trial", "", *shown):
            table.add_column(column, justify="right" if column in shown else "left")
        for trial, cells in rows:
            table.add_row(trial.name, trial.status, *(cells.get(column, "") for column in shown))
        return table


def plain_line(trial: TrialProgress) -> str:
    """One line for one iteration, for logs and pipes."""
    return "  ".join([trial.name, *(f"{name} {value}" for name, value in trial.cells().items())])


def duration(seconds: float) -> str:
    """'45 s', '12 min', '3 h 05 min', '2 d 4 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
