"""What ConSpec adds to an iteration: ConSpec and plain PPO on keys2, same policy, same run, turn by
turn.

Paper sizes (tuned_examples/paper/keys2.yaml) and small ones (tuned_examples/keys2.yaml), with
memories full; once with all prototypes live and once with all frozen, each on exemplars of its own,
which is as expensive as ConSpec gets.

Takes about 5 minutes. Expect `overhead:` (paper sizes, all live) of at most 1.3.
"""

from __future__ import annotations

import time

import numpy as np
from runs import build, experiment, fill_memories, start_ray

ITERATIONS = 6


def ratio(name: str, *, frozen: bool) -> float:
    """Median seconds of a ConSpec iteration over those of a PPO iteration, alternating."""
    # Every batch is learned from: a PPO that skips those without reward would cost nothing.
    config = experiment(name) | {"seed": 0, "learn_without_reward": True}
    algorithms = {"ConSpec": build(config, conspec=True), "PPO": build(config, conspec=False)}
    fill_memories(algorithms["ConSpec"], keys=2, frozen=frozen)
    times: dict[str, list[float]] = {label: [] for label in algorithms}
    for n in range(ITERATIONS + 1):
        for label, algorithm in algorithms.items():
            start = time.perf_counter()
            algorithm.train()
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


def main() -> None:
    start_ray(cpus=8)
    paper_live = ratio("paper/keys2", frozen=False)
    small_live = ratio("keys2", frozen=False)
    small_frozen = ratio("keys2", frozen=True)
    paper_frozen = ratio("paper/keys2", frozen=True)
    print(f"overhead_small: {small_live:.2f}")
    print(f"overhead_small_all_frozen: {small_frozen:.2f}")
    print(f"overhead_all_frozen: {paper_frozen:.2f}")
    print(f"overhead: {paper_live:.2f}")


if __name__ == "__main__":
    main()
