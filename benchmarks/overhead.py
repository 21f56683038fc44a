"""What ConSpec adds to an iteration: ConSpec and plain PPO, same policy, same run, turn by turn.

The product's own files: keys2.yaml, and orangetree.yaml with its two workers and their players; and
the paper's sizes (paper/keys2.yaml). Memories are full; once all prototypes are live and once all
are frozen, each on exemplars of its own, which is as expensive as ConSpec gets.

Takes about 12 minutes. Expect, all live, `overhead_keys:` of about 1.13, `overhead_orangetree:` of
at most 1.3 and `overhead:` (the paper's sizes) of at most 1.3.
"""

from __future__ import annotations

import time

import numpy as np
from memory import Player
from runs import build, experiment, fill, fill_memories, start_ray

ITERATIONS = 12  # single ones scatter by 5 %


def ratio(name: str, *, frozen: bool) -> float:
    """Median seconds of a ConSpec iteration over those of a PPO iteration, alternating."""
    # Every batch is learned from: a PPO that skips those without reward would cost nothing.
    config = experiment(name) | {"seed": 0, "learn_without_reward": True}
    algorithms = {"ConSpec": build(config, conspec=True), "PPO": build(config, conspec=False)}
    if name == "orangetree":
        fill(algorithms["ConSpec"], orangetree_batches(), frozen=frozen)
    else:
        fill_memories(algorithms["ConSpec"], keys=2, frozen=frozen)
    times: dict[str, list[float]] = {label: [] for label in algorithms}
    for n in range(ITERATIONS + 1):
        for label, algorithm in algorithms.items():
            start = time.perf_counter()
            algorithm.train()
            finish(algorithm)
            if n:  # the first one warms up
                times[label].append(time.perf_counter() - start)
    for algorithm in algorithms.values():
        algorithm.stop()
    median = {label: float(np.median(t)) for label, t in times.items()}
    state = "all frozen" if frozen else "all live"
    print(
        f"  {name:10s} {state:10s} ConSpec {median['ConSpec']:.2f} s, PPO {median['PPO']:.2f} s",
        flush=True,
    )
    return median["ConSpec"] / median["PPO"]


def finish(algorithm) -> None:
    """Wait for what its workers play ahead: it is work of this side, and not to be done in the
    other one's time.
    """
    algorithm.env_runner_group.foreach_env_runner(lambda runner: None, local_env_runner=False)


def orangetree_batches(count: int = 8) -> list[tuple[list, list]]:
    """Batches of 8 scripted successes and what is left of 8 random episodes."""
    player, batches = Player(16), []
    for _ in range(count):
        played = player.play()
        batches.append(tuple([e for won, e in played if won == kind] for kind in (True, False)))
    return batches


def main() -> None:
    start_ray(cpus=8)
    found = {
        "overhead_keys": ratio("keys2", frozen=False),
        "overhead_keys_all_frozen": ratio("keys2", frozen=True),
        "overhead_orangetree": ratio("orangetree", frozen=False),
        "overhead_orangetree_all_frozen": ratio("orangetree", frozen=True),
        "overhead": ratio("paper/keys2", frozen=False),
        "overhead_all_frozen": ratio("paper/keys2", frozen=True),
    }
    for name, value in found.items():
        print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
