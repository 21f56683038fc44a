"""Intrinsic rewards from scores: the window form (eqn 2) and the potential form (eqn 3).

Pure array functions. Scores s are [H, T]: H prototypes that pay, T steps of one episode; rewards
are [T].
"""

from __future__ import annotations

import numpy as np

# Of what eqn 2 paid one, two and three steps before, this much is taken away (the authors' code).
REPEAT_WEIGHTS = (1.0, 0.5, 0.25)


def thresholded(s: np.ndarray, threshold: float) -> np.ndarray:
    """ŝ: the score where it exceeds the threshold, else 0."""
    return np.where(s > threshold, s, 0.0)


def window_reward(
    s: np.ndarray,
    *,
    scale: float,
    threshold: float,
    window: int,
    remove_repeats: bool,
    once: bool = False,
) -> np.ndarray:
    """Eqn 2: a prototype pays where its ŝ is the maximum of `window` steps on either side.

    With `once` it pays at the first of its best steps in the whole episode instead.
    """
    paid = thresholded(s, threshold)
    if once:
        return scale * only_best(paid).sum(axis=0)
    peak = highest_around(paid, window)
    paid = np.where(paid == peak, paid, 0.0)
    if remove_repeats:
        paid = without_repeats(paid)
    return scale * paid.sum(axis=0)


def highest_around(paid: np.ndarray, window: int) -> np.ndarray:
    """The maximum of `window` steps on either side; beyond the ends there is nothing. [H, T]

    scipy.ndimage has it, too, but importing that takes every worker longer than it could ever save.
    """
    highest = paid.copy()
    for k in range(1, window + 1):
        np.maximum(highest[:, k:], paid[:, :-k], out=highest[:, k:])
        np.maximum(highest[:, :-k], paid[:, k:], out=highest[:, :-k])
    return highest


def only_best(paid: np.ndarray) -> np.ndarray:
    """What every prototype pays at the first of its best steps, 0 at all others. [H, T]"""
    best = paid.argmax(axis=-1, keepdims=True)
    kept = np.zeros_like(paid)
    np.put_along_axis(kept, best, np.take_along_axis(paid, best, axis=-1), axis=-1)
    return kept


def without_repeats(paid: np.ndarray) -> np.ndarray:
    """Take away 1, ½ and ¼ of what was paid one, two and three steps before, down to 0. [H, T]"""
    kept = paid.copy()
    for k, weight in enumerate(REPEAT_WEIGHTS, 1):
        kept[:, k:] -= weight * paid[:, :-k]
    return np.maximum(kept, 0.0)


def potential_reward(s: np.ndarray, *, scale: float, threshold: float, gamma: float) -> np.ndarray:
    """Eqn 3: γ ŝ_t − ŝ_{t−1} summed over prototypes, with ŝ_{−1} = 0."""
    potential = thresholded(s, threshold)
    before = np.concatenate([np.zeros_like(potential[:, :1]), potential[:, :-1]], axis=1)
    return scale * (gamma * potential - before).sum(axis=0)
