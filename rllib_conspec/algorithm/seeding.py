"""Random numbers that depend on where training stands, not on how it got there.

Each worker and learner derives the seed of its next piece of work from the run's seed, its own
index and the number of updates so far. A run that was saved and restored draws what the
uninterrupted run draws, with no generator state in the checkpoint.
"""

from __future__ import annotations

import random
import zlib

import numpy as np
import torch


def derived_seed(seed: int | None, purpose: str, *position: int) -> int | None:
    """A seed for one piece of work, or None when the run has no seed."""
    if seed is None:
        return None
    entropy = [seed, zlib.crc32(purpose.encode()), *position]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] // 2)


def seed_everything(seed: int | None) -> None:
    """Seed the global generators that RLlib's learners draw from."""
    if seed is not None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (RLlib draws from the global one)
        torch.manual_seed(seed)
