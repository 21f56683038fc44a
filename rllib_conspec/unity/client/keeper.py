"""Keeps a player running: starts it, and starts another one when it is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from rllib_conspec.errors import UserError
from rllib_conspec.unity.client.faults import PlayerFault

logger = logging.getLogger(__name__)
P = TypeVar("P")

# Seconds to wait before another start, by the number of failures in a row. After the last one
# waiting longer would not help: somebody has to look.
PAUSES = (0.0, 0.0, 1.0, 2.0, 4.0)


class Keeper(Generic[P]):
    """Holds the player of one environment, anything that can be aborted and closed.

    ``start`` starts a player and brings it to its first episodes. A failure is a start that does
    not get there, or a player that is lost before any episode of it came to an end.
    """

    def __init__(self, start: Callable[[], P], sleep: Callable[[float], None] = time.sleep):
        self._start = start
        self._sleep = sleep
        self._failures = 0
        self._started = False
        self._reason = ""
        self.player: P | None = None
        self.restarts = 0
        self.losses = 0
        self.incidents: list[str] = []  # a line for every loss

    def get(self) -> P:
        """The player, started if there is none."""
        while self.player is None:
            if self._failures == len(PAUSES):
                times = f"{self._failures} times in a row"
                raise UserError(f"the Unity player failed {times}; at last it {self._reason}")
            self._sleep(PAUSES[self._failures])
            self.restarts += self._started
            self._started = True
            try:
                self.player = self._start()
            except PlayerFault as fault:
                self.lost(fault)
        return self.player

    def lost(self, fault: PlayerFault) -> None:
        """The player is of no more use."""
        self._failures += 1
        self._reason = str(fault)
        self.losses += 1
        times = "once" if self.losses == 1 else f"{self.losses} times"
        line = f"the Unity player {self._reason} ({times} so far); another one takes its place."
        self.incidents.append(line)
        logger.warning(line)
        player, self.player = self.player, None
        if player is not None:
            player.abort()

    def worked(self) -> None:
        """The player has shown that it can play."""
        self._failures = 0

    def close(self) -> None:
        """End the player in good order."""
        player, self.player = self.player, None
        if player is not None:
            player.close()
