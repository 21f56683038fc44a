"""How well prototypes tell successes from failures of the same age, and how sure that is.

A batch has few successes or few failures, so that a verdict on one is unsure: a prototype that
separates by 0.7 would seldom be found to reach 0.5 in several batches running. `Judged` remembers
what was seen in the last ones before they were learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """Of every prototype, on some ages; all [H]."""

    separation: np.ndarray  # best match in a success minus the mean one in failures of its age
    error: np.ndarray  # standard error of that
    match: np.ndarray  # mean best match in successes
    successes: int  # that it rests on

    @classmethod
    def of(cls, won: Sequence[np.ndarray], lost: Sequence[np.ndarray]) -> Verdict:
        """Best matches in the successes [H, K_S] and failures [H, K_F] of each age."""
        gaps = np.concatenate(
            [w - f.mean(axis=1, keepdims=True) for w, f in zip(won, lost, strict=True)], axis=1
        )
        every = np.concatenate(list(lost), axis=1)
        error = np.sqrt(gaps.var(axis=1) / gaps.shape[1] + every.var(axis=1) / every.shape[1])
        match = np.concatenate(list(won), axis=1).mean(axis=1)
        return cls(gaps.mean(axis=1), error, match, gaps.shape[1])

    def reaches(self, threshold: float) -> np.ndarray:
        """The paper's criterion, with a standard error to spare: bool [H]."""
        return (self.separation - self.error > threshold) & (self.match > threshold)

    def refutes(self, threshold: float) -> np.ndarray:
        """Not half of what the criterion asks for, whatever the error: bool [H]."""
        return self.separation + self.error < threshold / 2


# Iterations whose verdicts are taken together.
TOGETHER = 5


class Judged:
    """Best matches in held-out ages, as they were when last judged."""

    def __init__(self) -> None:
        self._claims: Any = None
        self._iteration = 0
        # Age → iteration, best matches in its successes [H, K_S] and in its failures [H, K_F].
        self._ages: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}

    def note(
        self,
        claims: Any,
        ages: Sequence[int],
        won: Sequence[np.ndarray],
        lost: Sequence[np.ndarray],
    ) -> None:
        """Take in a look at these ages. Under other claims, or of fewer prototypes, matches were
        others: those from before are forgotten.
        """
        claims = (claims, len(won[0]))
        if claims != self._claims:
            self._claims, self._ages = claims, {}
        self._iteration += 1
        for number, *best in zip(ages, won, lost, strict=True):
            self._ages[number] = (self._iteration, *best)
        oldest = self._iteration - TOGETHER
        self._ages = {n: seen for n, seen in self._ages.items() if seen[0] > oldest}

    def verdict(self, first: int = 0, last: float = np.inf) -> Verdict | None:
        """On all of the last iterations, or on those of these ages; None if there are none."""
        seen = [(won, lost) for n, (_, won, lost) in self._ages.items() if first <= n <= last]
        return Verdict.of(*zip(*seen, strict=True)) if seen else None

    def get_state(self) -> dict[str, Any]:
        return {"claims": self._claims, "iteration": self._iteration, "ages": dict(self._ages)}

    def set_state(self, state: dict[str, Any]) -> None:
        self._claims, self._iteration = state.get("claims"), state.get("iteration", 0)
        self._ages = dict(state.get("ages", {}))
