"""Random numbers for many environments at once, without a generator object for each.

A number is a hash (splitmix64) of *where* it is used: the environment's seed, the episode, the step
and the cell. Nothing has to be stored but seed and episode count, the draws of one environment do
not depend on its neighbours, and a batch is a handful of array operations.
"""

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
LARGEST = np.uint64((1 << 64) - 1)


def mix(words: np.ndarray) -> np.ndarray:
    """Scramble uint64 ``words`` (an array: arithmetic on it wraps silently), shape kept."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def episode_words(seeds: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """One word per environment that names seed and episode: uint64 ``[n]`` from two ``[n]``."""
    return mix(mix(seeds) ^ episodes.astype(np.uint64))


def places(steps: int, count: int) -> np.ndarray:
    """A word for each of ``count`` draws at each step: uint64 ``[steps, count]``."""
    return mix(np.arange(steps * count, dtype=np.uint64)).reshape(steps, count)


def draws(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Random uint64 ``[n, count]`` from episode words ``[n]`` and places ``[n, count]``."""
    return mix(words[:, None] ^ places)


def seed_word(seed: int) -> np.uint64:
    return np.uint64(int(seed) & int(LARGEST))
