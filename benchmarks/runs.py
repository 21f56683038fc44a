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
from episodes import of_observations, random_episodes

from rllib_conspec import ConSpec, WholeEpisodePPO
from rllib_conspec.episodes import Episode
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
    cls = ConSpec if conspec else WholeEpisodePPO
    built = cls.get_default_config().update_from_dict(config)
    if runners is not None:
        each = built.episodes_per_batch // max(1, runners)
        built.env_runners(num_env_runners=runners, num_envs_per_env_runner=each)
    return built.build_algo()


def scripted_successes(keys: int, count: int) -> list[Episode]:
    """Successful episodes of the scripted solution, each with other apples."""
    actions = optimal_actions(keys)
    episodes = []
    for seed in range(count):
        env = gym.make("rllib_conspec:MultiKeyToDoor-v0", keys=keys)
        start, _ = env.reset(seed=seed)
        observations = [start, *(env.step(a)[0] for a in actions)]
        episodes.append(of_observations(np.stack(observations), True))
    return episodes


def fill_memories(algorithm, keys: int, *, frozen: bool) -> None:
    """Fill the memories, and freeze every prototype on episodes of its own if asked to."""
    lost = iter([e for i in range(8) for e in random_episodes(keys, 64, seed=i)])
    won = scripted_successes(keys, 64)
    batches = [(won[k : k + 8], [next(lost) for _ in range(8)]) for k in range(0, len(won), 8)]
    fill(algorithm, batches, frozen=frozen)


def fill(algorithm, batches: list[tuple[list[Episode], list[Episode]]], *, frozen: bool) -> None:
    """Give ConSpec these batches of successes and failures to remember."""
    learner = algorithm.learner_group._learner.reward_model.models["conspec"].learner
    for i, (won, lost) in enumerate(batches):
        learner.add(won, lost)
        if frozen and i < learner.options.num_prototypes:
            learner.met[i] = True
            learner.memory.freeze(i)
    # At the very first steps all scores are alike, and every frame carries gradient.
    for _ in range(8 // learner.options.steps_per_iteration):
        learner.step()
