"""Does the learner's memory stay flat? 500 iterations of ConSpec with all prototypes frozen, each
on exemplars of its own.

    python benchmarks/memory.py                     # keys1, policy and all: about 6 minutes
    python benchmarks/memory.py --task orangetree   # pictures of 84×84, ConSpec alone: 8 minutes
    python benchmarks/memory.py --task atari        # 600 steps of 84×84×3: about 15 minutes

The learner, with memories and exemplars, lives in this process, so its resident size is what is
measured: after 100 iterations, when every buffer is full, and after 500. OrangeTree's learner is
given new episodes in every iteration, and draws only two of each kind for its gradient steps: how
many it draws costs time, what it keeps is the question.

Atari: peaks of two processes that train delayed AirRaid, PPO alone and with ConSpec, 8 prototypes
frozen on 16 + 16 episodes of their own; then 200 iterations of ConSpec alone, as for OrangeTree.

Expect `growth_mb:` of less than 30 (allocator noise), over 400 iterations (Atari: 150); and of
Atari `above_ppo_mb:` of less than 2000.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import re
import resource
from collections.abc import Callable
from pathlib import Path

from runs import build, experiment, fill_memories, start_ray

# isort: split
import numpy as np
from gymnasium.spaces import Box, Discrete

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


def resident_mb() -> float:
    """Resident memory of this process in MB; not of files (libraries), whose pages the system takes
    and gives back as it likes, a hundred MB of them in a minute.
    """
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) * 1024 / 1e6


def watch(iterate: Callable[[], int], iterations: int = 500, full: int = 100) -> float:
    """Growth in MB while `iterate` runs, which returns how many prototypes are frozen, from when
    the memories are `full`.
    """
    start = 0.0
    for iteration in range(1, iterations + 1):
        frozen = iterate()
        if iteration == full:
            start = resident_mb()
        if iteration % full == 0:
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


# --- Atari --------------------------------------------------------------------------------------


def atari() -> float:
    """Peaks in processes of their own, then growth."""
    pool = multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1)
    peaks = [pool.apply(atari_peak, (conspec,)) for conspec in (False, True)]
    pool.close()
    pool.join()
    print(f"  peak of PPO alone {peaks[0]:.0f} MB, with ConSpec {peaks[1]:.0f} MB", flush=True)
    print(f"above_ppo_mb: {peaks[1] - peaks[0]:.0f}", flush=True)
    return atari_growth()


def atari_options(**values: int) -> dict:
    return {"num_prototypes": 8, "memory_size": 16} | values


def atari_peak(conspec: bool, iterations: int = 3) -> float:
    """The largest resident size in MB of a process that trains, memories full or without any."""
    import atari_games

    start_ray(cpus=1)
    config = atari_games.config()
    if conspec:
        config["conspec"] = atari_options()
    algorithm = build(config, conspec=conspec)
    if conspec:
        reward_model = algorithm.learner_group._learner.reward_model
        freeze_all(reward_model.models["conspec"].learner, atari_games.random_episodes(8))
    for _ in range(iterations):
        algorithm.train()
    algorithm.stop()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def freeze_all(learner: ConSpecLearner, episodes: list[Episode]) -> None:
    """Every prototype on exemplars that no other has: packed anew, they share nothing."""
    for i in range(learner.options.num_prototypes):
        for _ in range(learner.options.memory_size // 2):
            learner.add(episodes[:2], episodes[2:])
        learner.met[i] = True
        learner.memory.freeze(i)


def atari_growth() -> float:
    """ConSpec alone; it draws one episode of each kind for its steps."""
    import atari_games

    values = ConSpecModel.presets["atari"] | atari_options(memory_batch=1)
    episodes = atari_games.random_episodes(8)
    space = Box(0, 255, episodes[0].shape, np.uint8)
    model = ConSpecModel(ConSpecModel.Options(**values), Setting(space, Discrete(6), seed=0))
    freeze_all(model.learner, episodes)

    def iterate() -> int:
        frozen = model.update([(i < 2, e) for i, e in enumerate(episodes)])["frozen"]
        model.snapshot()
        return frozen

    return watch(iterate, iterations=200, full=50)


def main() -> None:
    tasks = {"keys": keys, "orangetree": orangetree, "atari": atari}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", choices=tasks, default="keys")
    growth = tasks[parser.parse_args().task]()
    print(f"growth_mb: {growth:.1f}")


if __name__ == "__main__":
    main()
