"""How often the agent has succeeded lately, and whether that is less often than before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

LATELY = 20  # batches
SURE = 2.0  # standard errors


class Share(NamedTuple):
    """Successes among so many episodes."""

    won: int
    played: int

    @property
    def mean(self) -> float:
        return self.won / max(1, self.played)

    @property
    def variance(self) -> float:
        """Of the mean, with one success and one failure more: never seen is not impossible."""
        chance = (self.won + 1) / (self.played + 2)
        return chance * (1 - chance) / max(1, self.played)

    def below(self, other: Share) -> bool:
        """Whether this is less than the other by more than chance."""
        return other.mean - self.mean > SURE * (self.variance + other.variance) ** 0.5


NOTHING = Share(0, 0)  # known; nobody succeeds less often


class Fortunes:
    """Successes and episodes of the newest batches."""

    def __init__(self, batches: Iterable[tuple[int, int]] = ()) -> None:
        self.batches = deque((Share(*batch) for batch in batches), maxlen=LATELY)

    def add(self, won: int, played: int) -> None:
        self.batches.append(Share(won, played))

    @property
    def lately(self) -> Share:
        return Share(sum(b.won for b in self.batches), sum(b.played for b in self.batches))
