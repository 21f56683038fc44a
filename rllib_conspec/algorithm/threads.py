"""Threads for the ConSpec step.

Ray gives a process one thread per CPU that it reserved, which is right for the many small products of an RL update. The ConSpec
step is a few large products at a time when rollout workers wait: there it may use every core it is allowed to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def all_cores() -> Iterator[None]:
    """Let torch use every core that this process may run on, then what it used before."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(before, len(os.sched_getaffinity(0))))
    try:
        yield
    finally:
        torch.set_num_threads(before)
