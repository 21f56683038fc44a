"""Live progress: a table on a terminal, one line per iteration anywhere else."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rllib_conspec.reward_models.base import RewardModel

STEPS = "num_env_steps_sampled_lifetime"
# Stop criteria whose pace is known.
ITERATIONS = ("training_iteration", "iterations_since_restore")
SECONDS = ("time_total_s", "time_since_restore")
PACED = (*ITERATIONS, STEPS, *SECONDS)
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

    def __init__(
        self, name: str, stop: Mapping[str, float], models: Sequence[type[RewardModel]] = ()
    ):
        self.name = name
        self.stop = stop
        self.models = models
        self.status = "starting"
        self.result: Mapping[str, Any] = {}
        self._hints: set[str] = set()
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
            **{key: (iterations, metric(self.result, key)) for key in ITERATIONS},
            STEPS: (steps, self._history[-1][2] if self._history else None),
            **{key: (seconds, metric(self.result, key)) for key in SECONDS},
        }
        left = [
            (self.stop[key] - done) * seconds / gained
            for key, (gained, done) in now.items()
            if key in self.stop and done is not None and gained > 0
        ]
        return max(0.0, min(left)) if left else None

    def new_hints(self) -> list[str]:
        """What the latest result says the user should know, and no result before it said."""
        new = [str(h) for h in self.result.get("hints") or () if str(h) not in self._hints]
        self._hints.update(new)
        return list(dict.fromkeys(new))

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
        for model in self.models:
            if isinstance(metrics := result.get(model.name), Mapping):
                cells |= model.cells(metrics)
        speed = self.steps_per_second()
        if speed is not None:
            cells["steps/s"] = f"{speed:,.0f}"
        left, goals = self.seconds_left(), self._goals()
        if left is not None:
            # Nobody knows when a goal is reached: it is said beside the time, not mixed into it.
            cells["left"] = " or until ".join([duration(left), *goals])
        elif goals:
            cells["left"] = f"until {' or '.join(goals)}"
        return cells

    def _goals(self) -> list[str]:
        """Stop criteria that are not a matter of time: 'success_rate_20 0.93'."""
        return [f"{key.split('/')[-1]} {v:g}" for key, v in self.stop.items() if key not in PACED]


# In this order, with those of the reward models between.
FIRST, LAST = ("iteration", "return", "success"), ("steps/s", "left")


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

    def started(
        self,
        trial_id: str,
        name: str,
        stop: Mapping[str, float],
        models: Sequence[type[RewardModel]] = (),
    ) -> None:
        self.trials.setdefault(trial_id, TrialProgress(name, stop, models))
        self._refresh()

    def result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        trial = self.trials[trial_id]
        trial.update(result)
        if self._live:
            self._refresh()
        else:
            self.say(plain_line(trial))
        which = f"{trial.name}: " if len(self.trials) > 1 else ""
        for incident in result.get("incidents") or ():
            self.say(f"{which}{incident}")
        for hint in trial.new_hints():
            self.say(f"hint: {which}{hint}")

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
        found = [column for _, cells in rows for column in cells]
        middle = [column for column in dict.fromkeys(found) if column not in FIRST + LAST]
        shown = [column for column in (*FIRST, *middle, *LAST) if column in found]
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
