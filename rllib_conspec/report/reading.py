"""Many trials at once: by as many processes as there are cores, where there is much to read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rllib_conspec.report.trials import RESULTS, Trial, read_trial

LARGE = 200_000_000  # bytes, two seconds of reading: less than it takes to start processes


def read_trials(paths: Iterable[Path]) -> list[Trial]:
    """All these trials, in their order."""
    paths = list(paths)
    workers = min(len(os.sched_getaffinity(0)), len(paths), 8)
    if workers < 2 or sum(map(_size, paths)) < LARGE:
        return [read_trial(path) for path in paths]
    # Fresh processes: a copy of this one could be of a moment when a library holds a lock.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(read_trial, paths, chunksize=4))


def _size(path: Path) -> int:
    try:
        return (path / RESULTS).stat().st_size
    except OSError:
        return 0
