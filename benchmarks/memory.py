"""Does the learner's memory stay flat? 500 iterations of ConSpec with all prototypes frozen, each
on exemplars of its own.

    python benchmarks/memory.py              # keys1, policy and all: about 6 minutes
    python benchmarks/memory.py orangetree   # pictures of 84×84, ConSpec alone: about 8 minutes

The learner, with memories and exemplars, lives in this process, so its resident size is what is
measured: after 100 iterations, when every buffer is full, and after 500. OrangeTree's learner is
given new episodes in every iteration, and draws only two of each kind for its gradient steps: how
many it draws costs time, what it keeps is the question.

Expect `growth_mb:` of less than 30 (allocator noise), over 400 iterations.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

from runs import build, experiment, fill_memories, start_ray

# isort: split
import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.model import ConSpecModel
from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.vector import (
    ACTION_SPACE,
    OBSERVATION_SPACE,
    OrangeTreeVectorEnv,
)

ITERATIONS, FULL = 500, 100


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def watch(iterate: Callable[[], int]) -> float:
    """Growth in MB while `iterate` runs, which returns how many prototypes are frozen."""
    start = 0.0
    for iteration in range(1, ITERATIONS + 1):
        frozen = iterate()
        if iteration == FULL:
            start = resident_mb()
        if iteration % 100 == 0:
            size = resident_mb()
            print(f"  iteration {iteration}: {size:.0f} MB, {frozen} prototypes frozen", flush=True)
    return resident_mb() - start


def keys() -> float:
    start_ray()
    algorithm = build(experiment("keys1") | {"seed": 0}, conspec=True)
    fill_memories(algorithm, keys=1, frozen=True)
    growth = watch(lambda: int(algorithm.train()["conspec"]["frozen"]))
    algorithm.stop()
    return growth


class Player:
    """New episodes of OrangeTree: the first half follow the script, the others act at random."""

    def __init__(self, count: int):
        self.envs = OrangeTreeVectorEnv(count)
        self.rng = np.random.default_rng(0)
        self.played = 0

    def play(self) -> list[tuple[bool, Episode]]:
        """(success, episode) of one batch."""
        count = self.envs.num_envs
        frames = [self.envs.reset(seed=self.played)[0]]
        self.played += count
        length, success = np.zeros(count, int), np.zeros(count, bool)
        while not length.all():
            actions = self.rng.integers(ACTION_SPACE.n, size=count)
            actions[: count // 2] = script.actions(self.envs)[: count // 2]
            observations, rewards, over, *_ = self.envs.step(actions)
            frames.append(observations)
            ends = over & (length == 0)
            length[ends], success[ends] = len(frames) - 1, rewards[ends] > 0
        played = np.stack(frames, axis=1)
        return [
            (bool(won), Episode(seen[: n + 1].copy(), np.zeros(n, int), np.zeros(n), success=won))
            for seen, n, won in zip(played, length, success, strict=True)
        ]


def freeze(learner: ConSpecLearner, i: int) -> None:
    learner.met[i] = True
    learner.memory.freeze(int(i))


def orangetree() -> float:
    values = experiment("orangetree_inprocess")["conspec"]
    small = {"memory_batch": 2, "steps_per_iteration": 1}
    options = ConSpecModel.Options(**(ConSpecModel.presets["few_successes"] | values | small))
    model = ConSpecModel(options, Setting(OBSERVATION_SPACE, ACTION_SPACE, seed=0))
    player, learner = Player(16), model.learner
    while sum(learner.memory.count) < 2 * options.memory_size:
        model.update(player.play())
    for i in range(options.num_prototypes):
        model.update(player.play())
        freeze(learner, i)

    def iterate() -> int:
        model.update(player.play())
        for i in np.flatnonzero(~learner.met):
            freeze(learner, i)  # new episodes had refuted it
        model.snapshot()
        return int(learner.met.sum())

    return watch(iterate)


def main(task: str = "keys") -> None:
    growth = {"keys": keys, "orangetree": orangetree}[task]()
    print(f"growth_mb: {growth:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
