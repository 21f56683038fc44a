"""Pairs of one age: every success is compared with failures of the training batch it came from.

A memory of old failures and new successes teaches prototypes what the policy of today does
differently from that of yesterday, which decides nothing. Within one batch all episodes are of one
policy, so that such differences cancel. Batches are a uniform sample of all training so far: a step
that the policy has long learned to take stays visible in those from before.

The newest batches are held back: prototypes are judged on them before they are learned from. A
frozen prototype goes on learning from the ages up to its freezing, its exemplars.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.view import Contrast

# The newest batches that hold this many successes and failures together are judged on.
HELD_OUT = 4
# One success in so many is drawn from a frozen prototype's own ages.
OLD = 4
# Failures that a success is judged against; the rest of a batch would only cost time.
JUDGED_FAILURES = 4
# Episodes of a kind that stand for what the memory holds.
EXAMPLES = 16


@dataclass(frozen=True, eq=False)
class Age:
    """The successes and failures of one training batch; there are some of both."""

    number: int  # batches that had come before it
    chance: float  # drawn once, in [0, 1): of all ages ever, those with the highest are kept
    successes: tuple[PackedEpisode, ...]
    failures: tuple[PackedEpisode, ...]

    def __len__(self) -> int:
        return len(self.successes) + len(self.failures)


class Ages:
    """The memory: some ages to learn from, and the newest to be judged on."""

    def __init__(self, options: ConSpecOptions, rng: np.random.Generator) -> None:
        self._options, self._rng = options, rng
        self._batches = 0
        self.known: list[Age] = []
        self.held: list[Age] = []
        self.seen = (0, 0)  # successes and failures ever taken in
        self.frozen: dict[int, int] = {}  # prototype → number of the last age that is its own
        self._waiting: tuple[PackedEpisode, ...] = ()  # successes from before the first batch

    def start_from(self, successes: Sequence[PackedEpisode]) -> None:
        """Compare these with the failures of the first batch that has any."""
        self._waiting = tuple(successes)

    def add(self, won: Sequence[Episode], lost: Sequence[Episode]) -> None:
        """Take in a batch; one without successes or without failures tells nothing."""
        self.seen = self.seen[0] + len(won), self.seen[1] + len(lost)
        self._batches += 1
        if not lost or not (won or self._waiting):
            return
        successes, failures = (tuple(e.packed() for e in kind) for kind in (won, lost))
        successes, self._waiting = (*self._waiting, *successes), ()
        self.held.append(Age(self._batches, float(self._rng.random()), successes, failures))
        while _enough(self.held[1:]):
            self.known.append(self.held.pop(0))
        while sum(map(len, self.known)) > 2 * self._options.memory_size and len(self.known) > 1:
            self.known.remove(min(self.known, key=lambda age: age.chance))

    @property
    def count(self) -> tuple[int, int]:
        """Successes and failures held."""
        ages = (*self.known, *self.held)
        return _successes(ages), sum(len(age.failures) for age in ages)

    @property
    def ready(self) -> bool:
        return _successes(self.known) >= self._options.successes_needed

    # --- learning -----------------------------------------------------------------------------

    def draw(self, live: Sequence[int]) -> tuple[Contrast, list[Contrast]]:
        """What the live prototypes are to tell apart, and what each frozen one is.

        All use the same episodes, a frozen one those of its own ages. Some successes are drawn from
        the ages of one frozen prototype, or these would be found ever more seldom.
        """
        count = self._options.memory_batch
        drawn: list[tuple[Age, PackedEpisode]] = []
        if self.frozen:
            turn = sorted(self.frozen)[int(self._rng.integers(len(self.frozen)))]
            own = [age for age in self.known if age.number <= self.frozen[turn]]
            drawn = self._successes(own, count // OLD)
        drawn += self._successes(self.known, count - len(drawn), {id(e) for _, e in drawn})
        against = self._failures([age for age, _ in drawn], count)
        won = [(age.number, e) for age, e in drawn]
        lost = [(age.number, e) for age, e in against]
        groups = [(tuple(live), self._batches), *(((i,), last) for i, last in self.frozen.items())]
        contrasts = [
            Contrast(which, *(tuple(e for n, e in kind if n <= last) for kind in (won, lost)))
            for which, last in groups
        ]
        return contrasts[0], [c for c in contrasts[1:] if c.successes]

    def _successes(
        self, ages: Sequence[Age], count: int, taken: Collection[int] = ()
    ) -> list[tuple[Age, PackedEpisode]]:
        """Different successes at random, with their ages."""
        every = [(a, success) for a in ages for success in a.successes if id(success) not in taken]
        chosen = self._rng.choice(len(every), min(count, len(every)), replace=False)
        return [every[i] for i in np.sort(chosen)]

    def _failures(self, ages: Sequence[Age], count: int) -> list[tuple[Age, PackedEpisode]]:
        """A failure of every success's age; while there are few successes, several, so that there
        are `count` all the same: against a handful, anything can be learned by heart.
        """
        each = max(1, count // len(ages))
        return [
            (age, age.failures[i])
            for age in ages
            for i in self._rng.choice(
                len(age.failures), min(each, len(age.failures)), replace=False
            )
        ]

    # --- judging ------------------------------------------------------------------------------

    def held_out(self) -> list[tuple[int, tuple[PackedEpisode, ...], tuple[PackedEpisode, ...]]]:
        """(number, successes, failures) of every age to judge on."""
        if not _enough(self.held):
            return []
        return [
            (
                age.number,
                age.successes,
                age.failures[: JUDGED_FAILURES * len(age.successes)],
            )
            for age in self.held
        ]

    def freeze(self, i: int) -> None:
        self.frozen[i] = self._batches

    def thaw(self, i: int) -> None:
        del self.frozen[i]

    def newest_successes(self, most: int = EXAMPLES) -> tuple[PackedEpisode, ...]:
        return tuple(e for age in (*self.known, *self.held) for e in age.successes)[-most:]

    def examples(self, i: int | None, most: int = EXAMPLES) -> tuple[tuple[Episode, ...], ...]:
        """Some successes and failures: the newest of prototype i's own ages, or of all."""
        last = self.frozen.get(i, self._batches)
        ages = [age for age in (*self.known, *self.held) if age.number <= last]
        kinds = ([e for a in ages for e in a.successes], [e for a in ages for e in a.failures])
        return tuple(tuple(e.unpacked() for e in kind[-most:]) for kind in kinds)

    # --- saving -------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Ages are immutable: the lists are copied, the episodes shared."""
        return {
            "known": [vars(age) for age in self.known],
            "held": [vars(age) for age in self.held],
            "batches": self._batches,
            "seen": self.seen,
            "frozen": dict(self.frozen),
            "waiting": self._waiting,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.known = [Age(**values) for values in state["known"]]
        self.held = [Age(**values) for values in state["held"]]
        self._batches, self.seen = state["batches"], tuple(state["seen"])
        self.frozen = dict(state["frozen"])
        self._waiting = state.get("waiting", ())


def _successes(ages: Sequence[Age]) -> int:
    return sum(len(age.successes) for age in ages)


def _enough(ages: Sequence[Age]) -> bool:
    """Whether there is enough of both kinds to judge on."""
    return min(_successes(ages), sum(len(age.failures) for age in ages)) >= HELD_OUT
