"""Algorithms from tuned_examples/, ready to be timed: memories filled, prototypes learning."""

from __future__ import annotations

import os
from pathlib import Path

# Before torch is imported: more threads make an RL update of small products slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import ray
import yaml
from episodes import random_episodes

from rllib_conspec import ConSpec, WholeEpisodePPO
from rllib_conspec.retrospection.memory import Exemplars, StoredEpisode
from rllib_conspec.tasks.keys.script import optimal_actions

EXAMPLES = Path(__file__).parents[1] / "tuned_examples"


def start_ray(cpus: int = 4) -> None:
    ray.init(address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False)


def experiment(name: str) -> dict:
    """The `config` of tuned_examples/<name>.yaml, with its environment."""
    (content,) = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()).values()
    return content["config"] | {"env": content["env"]}


def build(config: dict, *, conspec: bool, runners: int | None = None):
    """ConSpec, or plain PPO with the same policy, workers and batches."""
    config = dict(config)
    if not conspec:
        config.pop("conspec", None)
    if runners is not None:
        config["num_env_runners"] = runners
        config["num_envs_per_env_runner"] = config["episodes_per_batch"] // max(1, runners)
    cls = ConSpec if conspec else WholeEpisodePPO
    return cls.get_default_config().update_from_dict(config).build_algo()


def scripted_successes(keys: int, count: int) -> list[StoredEpisode]:
    """Successful episodes of the scripted solution, each with other apples."""
    actions = optimal_actions(keys)
    episodes = []
    for seed in range(count):
        env = gym.make("rllib_conspec:MultiKeyToDoor-v0", keys=keys)
        env.reset(seed=seed)
        frames = [env.step(a)[0] for a in actions]
        episodes.append(StoredEpisode.of(np.stack(frames), True))
    return episodes


def fill_memories(algorithm, keys: int, *, frozen: bool) -> None:
    """Fill S and F, and freeze every prototype on episodes of its own if asked to."""
    model = algorithm.learner_group._learner.reward_model
    count = model.options.memory_size
    won = scripted_successes(keys, 2 * count)
    for i in range(model.options.num_prototypes if frozen else 1):
        lost = random_episodes(keys, 2 * model.options.failures_kept, seed=i)
        model.add(won + [e.judged(False) for e in lost])
        if frozen:
            model.met[i] = True
            model.exemplars[i] = Exemplars(tuple(model.successes), tuple(model.failures))
    # At the very first steps all scores are alike, and every frame carries gradient.
    for _ in range(8 // model.options.steps_per_iteration):
        model.step()
