"""Rollout workers in this process, and what they played."""

import numpy as np
from ray.rllib.callbacks.callbacks import RLlibCallback

from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.report import episodes_at, fetched

NOTHING_NEW = {}


def runner_of(config, index=0):
    """A worker as RLlib makes one, but in this process."""
    config = config.copy(copy_frozen=False)
    config.validate()
    config.freeze()
    return EpisodeRunner(config=config, worker_index=index, num_workers=config.num_env_runners)


def paying(runner, pays=(0, 2)):
    """The worker, with a snapshot in which these prototypes met the criterion."""
    spaces = runner.get_spaces()["__env_single__"]
    together = runner.config.get_reward_model(*spaces)
    together.models["conspec"].learner.met[list(pays)] = True
    together.version = 17
    runner.load(together.snapshot())
    return runner


def reported(report):
    """The episodes behind a report, as reward models see them: with the environment's rewards."""
    return [episode for _, episode in episodes_at((None, p) for p in report.episodes)]


def frames(episodes):
    return np.concatenate([e.get_observations() for e in episodes])


def played_at(runner, position):
    ((shares, _, _),) = runner.sample_shares(position, NOTHING_NEW)
    return frames(fetched(shares[0]).rl)


class Counting(RLlibCallback):
    """A user's callback that changes nothing."""

    steps = ended = 0

    def on_episode_step(self, **kwargs):
        Counting.steps += 1

    def on_episode_end(self, **kwargs):
        Counting.ended += 1
