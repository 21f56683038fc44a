"""Threads for the step of a reward model.

Ray gives a process one thread per CPU that it reserved, which is right for the many small products
of an RL update. A large reward model has few and large products, at a time when rollout workers
wait: there it may use every core it is allowed to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Below this many parameters the products are too small to share: threads would wait for each other.
LARGE = 2_000_000


@contextmanager
def cores_for(parameters: int) -> Iterator[None]:
    """For a large model, let torch use every core that this process may run on."""
    before = torch.get_num_threads()
    if parameters >= LARGE:
        torch.set_num_threads(max(before, len(os.sched_getaffinity(0))))
    try:
        yield
    finally:
        torch.set_num_threads(before)
