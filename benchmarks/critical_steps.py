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
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm

import rllib_conspec.algorithm  # noqa: F401  (registers the algorithms by name)
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.report import episodes_at
from rllib_conspec.episodes import Episode
from rllib_conspec.report.checkpoint import read_models
from rllib_conspec.reward_models.conspec.found import coverage, find
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner

PLAYED = 64  # episodes of the trained policy
WANTED = 20  # successes of the random policy
REAL = 0.4
UNPLAYED = 10**9  # position of no training: other apples and rooms than any training episode had


def load_learner(checkpoint: Path) -> ConSpecLearner:
    """The learner's side of ConSpec, from a checkpoint."""
    states = {model.name: state for model, state in read_models(checkpoint)}
    return ConSpecLearner.from_state(states["conspec"])


def play(
    algorithm: Algorithm,
    count: int,
    *,
    random_actions: float = 0.0,
    position: int = UNPLAYED,
    **changes: Any,
) -> list[Episode]:
    """New episodes of the trained policy, a share of its actions random, with these changes of its
    configuration. Every `position` has other ones.
    """
    config = algorithm.config.copy(copy_frozen=False)
    # Without auxiliary losses, which may show a policy that learns other pictures.
    here = {"episodes_per_batch": count, "num_env_runners": 0, "auxiliary": {}}
    for name, value in (here | changes).items():
        setattr(config, name, value)
    config.validate()
    runner = EpisodeRunner(config=config, worker_index=0)
    runner.module.set_state(algorithm.env_runner.module.get_state())
    if random_actions:
        runner.module.act = _mixed(runner.module.act, random_actions)
    runner.position = position
    runner.sample()
    episodes = [e for _, e in episodes_at((None, p) for p in runner.take_report().episodes)]
    runner.stop()
    return episodes


def _mixed(act: Any, share: float) -> Any:
    """`act` of a policy of discrete actions, of which this share is drawn at random."""

    def mixed(*args: Any) -> Any:
        logits, *rest = act(*args)
        likely = (1 - share) * logits.softmax(-1) + share / logits.shape[-1]
        return likely.log(), *rest

    return mixed


def random_episodes(settings: dict) -> tuple[list[Episode], list[Episode]]:
    """Successes and failures of a random policy."""
    size = 256
    env = gym.make_vec(
        "rllib_conspec:MultiKeyToDoor-v0",
        num_envs=size,
        vectorization_mode="vector_entry_point",
        **settings,
    )
    rng = np.random.default_rng(0)
    won: list[Episode] = []
    lost: list[Episode] = []
    while len(won) < WANTED:
        seen = [env.reset(seed=int(rng.integers(2**30)))[0].copy()]
        chosen, gained = [], []
        end = np.full(size, env.unwrapped.max_episode_steps)
        success = np.zeros(size, dtype=bool)
        for t in range(env.unwrapped.max_episode_steps):
            chosen.append(rng.integers(0, 4, size))
            observations, rewards, terminated, _, _ = env.step(chosen[-1])
            seen.append(observations.copy())
            gained.append(rewards.copy())
            now = terminated & (t < end)
            end[now], success[now] = t + 1, rewards[now] > 0
        frames, actions, rewards = (np.stack(x, axis=1) for x in (seen, chosen, gained))
        played = [
            Episode(frames[e, : n + 1], actions[e, :n], rewards[e, :n], success=bool(success[e]))
            for e, n in enumerate(end)
        ]
        won += [e for e in played if e.success]
        lost = lost or [e for e in played if not e.success][:100]
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
        algorithm = Algorithm.from_checkpoint(str(checkpoint.absolute()))
        won = [e for e in play(algorithm, PLAYED) if e.success]
        found = find(learner, *random_episodes(dict(algorithm.config.env_config)))
        algorithm.stop()
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
