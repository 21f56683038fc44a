"""Did the prototypes of trained runs find the critical steps, and are they real?

    python benchmarks/critical_steps.py results/keys2 results/keys3

For the newest checkpoint of every trial below the given directories:
- covered: of the trained policy's new successes, the share in which some frozen prototype peaks
  within 2 steps of each key's pick-up (and of each door),
- real: of its frozen prototypes, the share that separates successes from failures of a random
  policy, none of which was ever trained on, by 0.4 or more.

Takes about 15 seconds a trial. Expect at least 0.8 everywhere on runs that solved their task.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm

import rllib_conspec.algorithm  # noqa: F401  (registers the algorithms by name)
from rllib_conspec.report.found import coverage, find, load_learner
from rllib_conspec.retrospection.memory import StoredEpisode

PLAYED = 64  # episodes of the trained policy
WANTED = 20  # successes of the random policy
REAL = 0.4


def policy_successes(checkpoint: Path) -> tuple[list[StoredEpisode], dict]:
    """New successful episodes of the trained policy, and the environment's settings."""
    algorithm = Algorithm.from_checkpoint(str(checkpoint))
    config = algorithm.config.copy(copy_frozen=False)
    runner = algorithm.env_runner
    config.episodes_per_batch = PLAYED
    runner.config = config
    # Where no training stood: other apples than any training episode had.
    runner.position = 10**9
    runner.sample()
    report = runner.take_report()
    algorithm.stop()
    won = [e for e, s in zip(report.episodes, report.summaries, strict=True) if s.success]
    return won, dict(config.env_config)


def random_episodes(settings: dict) -> tuple[list[StoredEpisode], list[StoredEpisode]]:
    """Successes and failures of a random policy."""
    size = 256
    env = gym.make_vec(
        "rllib_conspec:MultiKeyToDoor-v0",
        num_envs=size,
        vectorization_mode="vector_entry_point",
        **settings,
    )
    rng = np.random.default_rng(0)
    won: list[StoredEpisode] = []
    lost: list[StoredEpisode] = []
    while len(won) < WANTED:
        env.reset(seed=int(rng.integers(2**30)))
        frames, end = [], np.full(size, env.unwrapped.max_episode_steps)
        success = np.zeros(size, dtype=bool)
        for t in range(env.unwrapped.max_episode_steps):
            observations, rewards, terminated, _, _ = env.step(rng.integers(0, 4, size))
            frames.append(observations.copy())
            now = terminated & (t < end)
            end[now], success[now] = t + 1, rewards[now] > 0
        played = np.stack(frames, axis=1)
        won += [StoredEpisode.of(played[e, : end[e]], True) for e in np.flatnonzero(success)]
        if not lost:
            failed = np.flatnonzero(~success)[:100]
            lost = [StoredEpisode.of(played[e, : end[e]], False) for e in failed]
    return won[:WANTED], lost


def newest_checkpoints(directory: str) -> list[Path]:
    trials = {path.parent for path in Path(directory).rglob("checkpoint_*") if path.is_dir()}
    return [max(trial.glob("checkpoint_*")) for trial in sorted(trials)]


def main(directories: list[str]) -> int:
    checkpoints = [c for directory in directories for c in newest_checkpoints(directory)]
    if not checkpoints:
        print(__doc__)
        return 2
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    least, real, frozen = 1.0, 0, 0
    for checkpoint in checkpoints:
        learner = load_learner(checkpoint)
        won, settings = policy_successes(checkpoint)
        found = find(learner, *random_episodes(settings))
        shares = coverage(learner, won) if won and learner.met.any() else {}
        print(f"{checkpoint.parent}: {len(won)} of {PLAYED} episodes succeed")
        print("  covered: " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()))
        print("  separation: " + ", ".join(f"{f.separation:.2f}" for f in found), flush=True)
        keys = [share for name, share in shares.items() if name.startswith("key_taken")]
        least = min([least, *keys]) if keys else 0.0
        real += sum(f.separation >= REAL for f in found)
        frozen += len(found)
    print(f"covered_least: {least:.2f}")
    print(f"frozen_real: {real / max(1, frozen):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
