"""Do remote workers pay off? Two of them against none, and two players against one.

- workers: ConSpec on 4 keys before the first success, whole iterations: two remote workers of 32
  environments against one process of 16. Nothing is paid and nothing is learned, so that workers
  play several batches in one go (`algorithm/stock.py`).
- players: sampling alone in OrangeTree, a batch of 16 episodes: two workers whose players have 8
  agents each against one worker whose player has 16.

Both sides are alive all the time and take turns of some seconds, so that whatever else the machine
does slows both; ratios are of medians. A busy machine favours the side with more processes, so CPU
time (of the driver, its workers and their players) is shown too, which depends less on the load.

Takes about 2 minutes. The aim on two idle cores is `workers_speedup` 1.7 and `players_speedup` 1.5.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from runs import build, experiment, start_ray

TURNS = 5


def processes(algorithm) -> list[int]:
    """Ids of the driver, of its remote workers and of their players."""
    workers = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: os.getpid(), local_env_runner=False
    )
    return [os.getpid(), *(child for worker in workers for child in with_children(worker))]


def with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in with_children(int(child)))]


def cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def turns(sides: dict[str, tuple[list[int], Callable[[], int]]]) -> dict[str, float]:
    """Median steps per second of every side; a turn plays and returns its steps."""
    speed = {name: [] for name in sides}
    cost = {name: [] for name in sides}
    for turn in range(TURNS):
        for name in sides if turn % 2 else reversed(sides):
            own, play = sides[name]
            before, start = cpu_seconds(own), time.perf_counter()
            steps = play()
            speed[name].append(steps / (time.perf_counter() - start))
            cost[name].append(1e6 * (cpu_seconds(own) - before) / steps)
    for name in sides:
        print(
            f"  {name:12s}{np.median(speed[name]):8.0f} steps/s, "
            f"{np.median(cost[name]):6.1f} µs of CPU a step",
            flush=True,
        )
    return {name: float(np.median(values)) for name, values in speed.items()}


def settle(algorithm) -> None:
    """Throw away what was played ahead, and wait until workers have nothing to do: a turn counts
    all that it plays, and nobody plays in another one's turn.
    """
    algorithm._stock.spoil()
    algorithm.env_runner_group.foreach_env_runner(lambda runner: None, local_env_runner=False)


def training(algorithm) -> Callable[[], int]:
    """A turn of 16 iterations."""

    def play() -> int:
        before = algorithm._position
        for _ in range(16):
            algorithm.train()
        played = algorithm._position - before
        settle(algorithm)
        return played

    return play


def sampling(algorithm) -> Callable[[], int]:
    """A turn of one batch, which nobody learns from."""

    def play() -> int:
        algorithm._sample()
        reports = [report for _, _, report in algorithm._stock.take()]
        return sum(summary.length for report in reports for summary in report.summaries)

    return play


def compare(title: str, config: dict, sides: dict[str, dict], turn: Callable) -> float:
    """Speed of the first side over that of the second."""
    print(f"{title}:", flush=True)
    algorithms = {
        name: build(config | options | {"seed": 0}, conspec=True) for name, options in sides.items()
    }
    for algorithm in algorithms.values():
        turn(algorithm)()
    speed = turns({name: (processes(a), turn(a)) for name, a in algorithms.items()})
    for algorithm in algorithms.values():
        algorithm.stop()
    many, few = speed.values()
    return many / few


def main() -> None:
    start_ray(cpus=8)
    none = {"num_env_runners": 0, "num_envs_per_env_runner": 16}
    two = {"num_env_runners": 2, "num_envs_per_env_runner": 32}
    workers = compare(
        "4 keys before the first success",
        experiment("keys4"),
        {"two workers": two, "one process": none},
        training,
    )
    one = {"num_env_runners": 1, "num_envs_per_env_runner": 16}
    two = {"num_env_runners": 2, "num_envs_per_env_runner": 8}
    players = compare(
        "OrangeTree, sampling alone",
        experiment("orangetree"),
        {"two players": two, "one player": one},
        sampling,
    )
    print(f"workers_speedup: {workers:.2f}")
    print(f"players_speedup: {players:.2f}")


if __name__ == "__main__":
    main()
