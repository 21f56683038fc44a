"""Batches that remote workers play before their iteration has come.

Where batches without any reward are not learned from, neither the policy nor what pays changes from
one of them to the next. So workers play a round of several in one go, as many as their environments
have room for, and the next round while the driver hands this one out, a batch for every iteration.
What was played by weights or a snapshot that have changed since is never used, so that every batch
is the one that its iteration would have asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from rllib_conspec.algorithm.report import Report

# A worker's part of a batch: shares of the learners (or references), RLlib's metrics, the report.
Part = tuple[list[Any], dict[str, Any], Report]
Batch = Sequence[Part]  # of all workers that answered


class Round(NamedTuple):
    """What workers are asked for."""

    number: int  # tells answers that came too late
    position: int  # where training stands when it begins, for seeds
    batches: int


class Stock:
    """The batches of a round that wait for their iteration."""

    def __init__(self, most: int) -> None:
        self._most = most  # batches in a round
        self._size = most  # of the next round
        self._number = 0
        self._batches: deque[Batch] = deque()
        self._round: Round | None = None  # whose batches these are; restored, the one to play again
        self._used = 0  # batches of it that were handed out
        self._steps = 0  # of all batches of it
        self._asked_ahead = False

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def spoilable(self) -> bool:
        """Whether anything was played, or is being played, that may lose its worth."""
        return bool(self._batches) or self._asked_ahead

    @property
    def paid(self) -> bool:
        """Whether anything was paid in a batch that waits."""
        return any(_paid(batch) for batch in self._batches)

    def ask(self, now: int) -> Round:
        """The round to ask for where training stands at `now`."""
        self._number += 1
        if self._round is not None:  # restored in its middle: its last batches are still wanted
            return self._round._replace(number=self._number)
        return Round(self._number, now, self._size)

    def ask_ahead(self) -> Round:
        """The round after the one that was just filled in."""
        self._number += 1
        self._asked_ahead = True
        return Round(self._number, self._round.position + self._steps, self._most)

    def wants(self, round_: Round) -> bool:
        """Whether it is the one that was asked for last, and nothing has changed since."""
        return round_.number == self._number

    def fill(self, round_: Round, batches: Sequence[Batch]) -> None:
        self._round, self._asked_ahead = round_, False
        reports = [report for batch in batches for _, _, report in batch]
        self._steps = sum(s.length for report in reports for s in report.summaries)
        self._batches.extend(batches[self._used :])
        self._end_if_empty()

    def take(self) -> Batch:
        """The batch of this iteration."""
        batch = self._batches.popleft()
        self._used += 1
        # Where something is paid now and then, learning from it would spoil the rest of a round.
        self._size = 1 if _paid(batch) else self._most
        self._end_if_empty()
        return batch

    def _end_if_empty(self) -> None:
        if not self._batches:
            self._round, self._used = None, 0

    def spoil(self) -> None:
        """What workers play by has changed."""
        self._number += 1
        self._asked_ahead = False
        self._batches.clear()
        self._end_if_empty()

    def get_state(self) -> dict[str, Any]:
        """Where in a round the run stands: enough to play it again."""
        _, position, batches = self._round or (0, None, self._size)
        return {"position": position, "batches": batches, "used": self._used}

    def set_state(self, state: dict[str, Any]) -> None:
        self.spoil()
        self._size, self._used = state["batches"], state["used"]
        if state["position"] is not None:
            self._round = Round(0, state["position"], state["batches"])


def _paid(batch: Batch) -> bool:
    return any(report.any_reward for _, _, report in batch)
