"""How long `rllib report` takes, and how much memory, on hundreds of trials that never were.

    python benchmarks/report.py [--trials 200] [--rows 1000]

Every row is as long as a real one, 16 kB: 200 trials of 1000 rows are 3.1 GB, which are written to
a temporary directory first. Prints `seconds:` (wall time), `cpu_seconds:` (with the processes that
it starts) and `peak_mb:` (this process and the largest of those).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from rllib_conspec.report.page.build import write_report

FILLING = 4000  # bytes of timers, losses and the like in a real row
CONFIG = {f"setting_{i}": "a value of some length" for i in range(280)}  # 12 kB, as a real one


def write_trials(directory: Path, trials: int, rows: int) -> None:
    """Trials of ten configurations, with seeds."""
    after = {"time_since_restore": 1.0, "iterations_since_restore": 1}
    filling = {f"loss_{i}": 0.123456789 for i in range(FILLING // 24)}
    for k in range(trials):
        rng = np.random.default_rng(k)
        path = directory / "synthetic" / f"trial_{k}"
        path.mkdir(parents=True)
        params = {"env": "none", "lr": 0.001 * (k % 10 + 1), "seed": k // 10}
        (path / "params.json").write_text(json.dumps(params))
        rates = np.clip(np.linspace(0, 1, rows) + 0.1 * rng.standard_normal(rows), 0, 1)
        with (path / "result.json").open("w") as stream:
            for i, rate in enumerate(rates):
                runners = {"success_rate": rate, "episode_return_mean": 10 * rate}
                row = {
                    "env_runners": runners,
                    "learners": filling,
                    "num_env_steps_sampled_lifetime": 1000 * (i + 1),
                    "done": i + 1 == rows,
                    "training_iteration": i + 1,
                    "time_total_s": 1.5 * (i + 1),
                    "config": CONFIG,
                }
                stream.write(json.dumps(row | after) + "\n")


def cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        write_trials(Path(directory), given.trials, given.rows)
        began, busy = time.perf_counter(), cpu_seconds()
        write_report([directory], Path(directory) / "out")
        seconds, busy = time.perf_counter() - began, cpu_seconds() - busy
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = sum(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024
    print(f"seconds: {seconds:.1f}")
    print(f"cpu_seconds: {busy:.1f}")
    print(f"peak_mb: {peak:.0f}")


if __name__ == "__main__":
    main()
