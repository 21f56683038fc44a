"""What is known of one trial: its curves, what happened, and how it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rllib_conspec.report.live.charts import SPEED, X, layout, place, sections

STEPS, ITERATION, SECONDS = X
MOST = 3000  # rows kept: with more, every second one is dropped. A screen has no more points
SAID = 200  # lines of the log kept


class History:
    """The rows of a trial as columns, which all have the same length; None where there is none."""

    def __init__(self, models: Sequence[str] = ()) -> None:
        self.columns: dict[str, list[float | None]] = {name: [] for name in X}
        self.log: list[dict[str, Any]] = []  # {at: iteration, kind, text}
        self.last: Mapping[str, Any] = {}
        self.models = list(models)  # sections of reward models
        self.begun: list[int] = []  # iterations after which the run was resumed
        self.every = 1  # one row stands for so many
        self._peaks: dict[str, float | None] = {}  # of metrics that were whole so far
        self._hints: set[str] = set()
        self._before: tuple[float, float] | None = None  # steps and seconds of the row before

    def __len__(self) -> int:
        return len(self.columns[ITERATION])

    @property
    def layout(self) -> list[dict[str, Any]]:
        return layout({m: p for m, p in self._peaks.items() if m not in X}, self.models)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._note(row)
            values = self._drawn(row)
            for name in values.keys() - self.columns.keys():
                self.columns[name] = [None] * len(self)
            for name, value in values.items():
                if value is not None:
                    peak = self._peaks.get(name, 0)
                    whole = peak is not None and value == int(value)
                    self._peaks[name] = max(peak, value) if whole else None
            for name, column in self.columns.items():
                column.append(values.get(name))
            self.last = row

    def thin(self) -> bool:
        """Keep every second row if there are too many, and the newest; whether that was so."""
        if len(self) <= MOST:
            return False
        for name, column in self.columns.items():
            self.columns[name] = column[len(column) % 2 ^ 1 :: 2]
        self.every *= 2
        return True

    def since(self, count: int) -> dict[str, list[float | None]]:
        """The columns without their first `count` rows, and without those that have nothing."""
        new = {name: column[count:] for name, column in self.columns.items()}
        return {n: c for n, c in new.items() if n in X or any(v is not None for v in c)}

    def say(self, kind: str, text: str) -> None:
        self.log.append({"at": number(self.last.get(ITERATION)), "kind": kind, "text": text})
        del self.log[:-SAID]

    def facts(self) -> dict[str, str]:
        """How it stands, for the head of the page: title → text."""
        row, facts = self.last, {}
        shown = {
            "iteration": (ITERATION, "{:,.0f}"),
            "steps": (STEPS, "{:,.0f}"),
            "success": ("env_runners/success_rate_20", "{:.0%}"),
            "return": ("env_runners/episode_return_mean", "{:.3g}"),
            "steps/s": (SPEED, "{:,.0f}"),
        }
        for title, (name, form) in shown.items():
            value = self.columns.get(name, [None])[-1] if len(self) else None
            if value is not None:
                facts[title] = form.format(value)
        health = row.get("fault_tolerance")
        config = row.get("config")
        workers = config.get("num_env_runners") if isinstance(config, Mapping) else None
        if isinstance(health, Mapping) and isinstance(workers, int) and workers > 0:
            answer = number(health.get("num_healthy_workers"))
            again = number(health.get("num_remote_worker_restarts"))
            if answer is not None:
                facts["workers"] = f"{answer:.0f} of {workers}"
            if again:
                facts["worker restarts"] = f"{again:.0f}"
        return facts

    def _drawn(self, row: Mapping[str, Any]) -> dict[str, float | None]:
        """What is drawn of a row, by name."""
        self.models = list(dict.fromkeys([*self.models, *sections(row)]))
        numbers = dict(_numbers(row))
        numbers.setdefault(STEPS, numbers.get(f"env_runners/{STEPS}"))
        values = {name: numbers.get(name) for name in X}
        values |= {n: v for n, v in numbers.items() if place(n, self.models)}
        steps, seconds = values[STEPS], values[SECONDS]
        if steps is not None and seconds is not None:
            if self._before is None:  # before the first row of all there was nothing
                spent, taken = numbers.get("time_this_iter_s"), "env_runners/num_env_steps_sampled"
                gained = (numbers.get(taken) or 0, spent or 0)
            else:
                gained = (steps - self._before[0], seconds - self._before[1])
            if gained[0] > 0 and gained[1] > 0:
                values[SPEED] = _short(gained[0] / gained[1])
            self._before = (steps, seconds)
        return values

    def _note(self, row: Mapping[str, Any]) -> None:
        """What happened in this iteration goes into the log."""
        before, self.last = self.last, row
        now, here = number(row.get(ITERATION)), number(row.get("iterations_since_restore"))
        if now is not None and here is not None and now > here:
            begun = int(now - here)
            if begun not in self.begun:
                self.begun.append(begun)
                self.say("resumed", f"resumed after iteration {begun}")
        for line in _lines(row.get("incidents")):
            self.say("incident", line)
        for line in _lines(row.get("hints")):
            if line not in self._hints:
                self._hints.add(line)
                self.say("hint", line)
        if row.get("done") is True and before.get("done") is not True:
            self.say("end", "finished")


def _lines(value: Any) -> list[str]:
    return [str(line) for line in value] if isinstance(value, list) else []


def _numbers(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """(path, number) of every number in nested results, but for the settings."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            if above or key not in ("config", "timers"):
                yield from _numbers(value, f"{above}{key}/")
        elif (found := number(value)) is not None:
            yield f"{above}{key}", found


def number(value: Any) -> float | None:
    """A finite number as it is drawn; None for all else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return _short(value)


def _short(value: float) -> float:
    """Six digits are more than can be seen, and what is whole stays so."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
