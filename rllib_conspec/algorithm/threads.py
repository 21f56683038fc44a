"""Threads for what a learner computes.

Ray gives a process one thread per CPU that it reserved, which is right for the many small products
of an RL update. A large reward model has few and large products, and so has every network that
looks at pictures; where rollout workers wait meanwhile, both may use every core that there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray
import torch

# Below this many parameters the products are too small to share: threads would wait for each other.
LARGE = 2_000_000
# Numbers in an observation (60×60×3) from which its network's products are large.
PICTURE = 10_800


def cores_to_spare(workers: int) -> int:
    """Cores of this machine that are left when so many rollout workers play; all of them, if there
    are other machines.
    """
    cores = len(os.sched_getaffinity(0))
    machines = sum(node["Alive"] for node in ray.nodes()) if ray.is_initialized() else 1
    return cores if machines > 1 else max(0, cores - workers)


@contextmanager
def cores_for(parameters: int = 0, observation: int = 0, most: int | None = None) -> Iterator[None]:
    """For a large model, or observations of so many numbers, let torch use every core that this
    process may run on, or `most` of them.
    """
    before = torch.get_num_threads()
    if parameters >= LARGE or observation >= PICTURE:
        torch.set_num_threads(max(before, most or len(os.sched_getaffinity(0))))
    try:
        yield
    finally:
        torch.set_num_threads(before)
