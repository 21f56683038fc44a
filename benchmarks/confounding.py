"""Do frozen prototypes mean what decides an episode, or only what the policy does nowadays?

    python benchmarks/confounding.py results/orangetree results/keys2 results/keys3

Plays 256 episodes with the trained policy of the newest checkpoint of every trial, in process. So
that one and the same policy both succeeds and fails, some of its actions are random: as few as make
a fifth of the episodes fail. For each frozen prototype: the best match in successes minus that in
failures. What only tells a policy of today from one of yesterday is in both, and separates nothing.

Takes about a minute a trial. Expect `within_policy:` (share of the prototypes that separate by 0.4
or more) of at least 0.8.
"""

from __future__ import annotations

import sys

# Sets the number of threads before torch is imported.
from critical_steps import REAL, load_learner, newest_checkpoints, play

import numpy as np  # isort: skip
import ray
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.found import find

PLAYED = 256
FAILING = 0.2
RANDOM = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # shares of random actions to try


def mixed_episodes(algorithm: Algorithm) -> tuple[float, list[Episode]]:
    """The share of random actions, and episodes of which enough fail."""
    for share in RANDOM:
        episodes = play(algorithm, PLAYED, random_actions=share)
        if np.mean([not e.success for e in episodes]) >= FAILING:
            break
    return share, episodes


def main(directories: list[str]) -> int:
    checkpoints = [c for directory in directories for c in newest_checkpoints(directory)]
    if not checkpoints:
        print(__doc__)
        return 2
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    separations: list[float] = []
    for checkpoint in checkpoints:
        algorithm = Algorithm.from_checkpoint(str(checkpoint.absolute()))
        share, episodes = mixed_episodes(algorithm)
        algorithm.stop()
        won = [e for e in episodes if e.success]
        lost = [e for e in episodes if not e.success]
        print(f"{checkpoint.parent}: {len(won)} successes, {len(lost)} failures, {share} random")
        for found in find(load_learner(checkpoint), won, lost):
            separations.append(found.separation)
            print(f"  {found}", flush=True)
    real = np.mean([s >= REAL for s in separations]) if separations else 0.0
    print(f"prototypes: {len(separations)}")
    print(f"within_policy: {real:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
