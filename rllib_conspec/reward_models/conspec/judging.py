"""How well prototypes tell successes from failures of the same age, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
