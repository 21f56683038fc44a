"""Metrics of one iteration, over all of its training steps.

Some algorithms take many small training steps an iteration. What a user sees of an iteration is
about the whole of it.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_conspec.algorithm.report import Report

SECONDS = "seconds"
BYTES_TO_DEVICE = "bytes_to_device"
RECENT = 20  # iterations in `success_rate_20`


class Iteration:
    """Collects what happens, and logs it as the values of the iteration that goes on."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._seconds: dict[str, float] = {}
        self._recent: deque[float] = deque(maxlen=RECENT - 1)  # success rates before this one
        self._begin()

    def _begin(self) -> None:
        self._success: list[bool] = []
        self._paid: list[float] = []
        self._dropped = 0
        # A phase that an iteration does without took no time; RLlib would call it not a number.
        self._seconds = defaultdict(float, dict.fromkeys(self._seconds, 0.0))
        self._sent: dict[str, int] = defaultdict(int)

    def at(self, number: int) -> None:
        """Say which iteration it is; a new one begins with nothing."""
        if self._number is not None and number != self._number:
            if self._success:
                self._recent.append(float(np.mean(self._success)))
            self._begin()
        self._number = number

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spend(phase, time.perf_counter() - start)

    def spend(self, phase: str, seconds: float) -> None:
        self._seconds[phase] += seconds

    def send(self, phase: str, sent: int) -> None:
        """So many bytes were brought to a learner's device."""
        self._sent[phase] += sent

    def add(self, reports: Iterable[Report]) -> None:
        reports = list(reports)
        judged = [s.success for report in reports for s in report.summaries]
        self._success += [success for success in judged if success is not None]
        self._paid += [paid for report in reports for paid in report.intrinsic_returns]
        self._dropped += sum(report.dropped for report in reports)
        # Workers sample side by side: the slowest one is what the iteration waited for.
        for phase in ("sample", "score"):
            spent = [getattr(report, f"{phase}_seconds") for report in reports]
            self._seconds[phase] += max(spent, default=0.0)

    @property
    def success_before(self) -> float:
        """Mean success of the last iterations before this one; those that are missing, or in which
        success is not measured, count as failures.
        """
        return sum(self._recent) / (RECENT - 1)

    def log(self, metrics: MetricsLogger) -> None:
        """Log the values so far. Those of an iteration's last training step stand in its result."""
        if self._success:
            rate = float(np.mean(self._success))
            log_value(metrics, (ENV_RUNNER_RESULTS, "success_rate"), rate)
            # What "solved" is judged by, and a good thing to stop at. RLlib's own windows end with
            # every iteration. Before there are 20, the missing ones count as failures.
            recent = (sum(self._recent) + rate) / RECENT
            log_value(metrics, (ENV_RUNNER_RESULTS, "success_rate_20"), recent)
        if self._paid:
            paid = float(np.mean(self._paid))
            log_value(metrics, (ENV_RUNNER_RESULTS, "intrinsic_return_mean"), paid)
        metrics.log_value(
            (ENV_RUNNER_RESULTS, "num_episodes_dropped_lifetime"),
            self._dropped,
            reduce="lifetime_sum",
        )
        self._dropped = 0
        for phase, seconds in self._seconds.items():
            log_value(metrics, (SECONDS, phase), seconds)
        for phase, sent in self._sent.items():
            log_value(metrics, (BYTES_TO_DEVICE, phase), sent)

    def get_state(self) -> dict[str, Any]:
        recent = [*self._recent, *([float(np.mean(self._success))] if self._success else [])]
        return {"recent_success": recent}

    def set_state(self, state: dict[str, Any]) -> None:
        self._begin()
        self._number = None
        self._recent.clear()
        self._recent.extend(state["recent_success"])


def log_value(metrics: MetricsLogger, key: tuple[str, ...], value: float) -> None:
    """Log the value of this iteration as it is, not averaged with earlier ones."""
    metrics.log_value(key, value, window=1)


def log_nested(metrics: MetricsLogger, key: tuple[str, ...], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            log_nested(metrics, (*key, name), value)
        else:
            log_value(metrics, (*key, name), value)
