"""Whole-episode PPO learns, and deals episodes out to learners."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.report import Report, Share
from rllib_conspec.algorithm.whole_episodes import WholeEpisodes
from rllib_conspec.episodes import Summary


class Recall(gym.Env):
    """A cue is shown on the first of three steps; the last action must repeat it."""

    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue, self.t = int(self.np_random.integers(2)), 0
        return np.array([self.cue, 1 - self.cue, 0], np.float32), {}

    def step(self, action):
        self.t += 1
        over = self.t == 3
        return np.array([0, 0, 1], np.float32), float(over and action == self.cue), over, False, {}


class Aim(gym.Env):
    """A number, rewarded by how near it comes to what is seen. Lasts one to four steps."""

    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-3.0, 3.0, (1,), np.float32)

    def _see(self):
        self.target = self.np_random.uniform(-1, 1)
        return np.array([self.target], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, 5))
        return self._see(), {}

    def step(self, action):
        error = abs(float(action[0]) / 3 - self.target)
        self.left -= 1
        return self._see(), -error, False, self.left == 0, {}


def learn(env, steps, iterations, core_dim, core="gru", **auxiliary):
    config = (
        WholeEpisodePPOConfig()
        .rewards(preset="paper")
        .environment(env)
        .episodes(per_batch=32, per_minibatch=8, max_steps=steps)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=8)
        .rl_module(model_config={"encoder": "mlp", "encoder_dim": 16, "core_dim": core_dim})
        .rl_module(model_config={"core": core})
        .training(lr=5e-3, clip_param=0.2, entropy_coeff=0.0, auxiliary=auxiliary)
        .debugging(seed=0)
    )
    algo = config.build_algo()
    results = [algo.train()["env_runners"] for _ in range(iterations)]
    algo.stop()
    return results


@pytest.mark.parametrize(
    ("core_dim", "memory"),
    [(16, {}), (0, {}), (16, {"core": "rma", "reconstruct": {}})],
)
def test_memory_solves_what_needs_memory(ray_local, core_dim, memory):
    results = learn(Recall, 3, 25, core_dim, **memory)
    last = np.mean([r["episode_return_mean"] for r in results[-3:]])
    assert (last > 0.9) == bool(core_dim)
    assert last > 0.3  # a guess is right half of the time


def test_continuous_actions_are_learned(ray_local):
    results = learn(Aim, 4, 25, 0)

    def per_step(result):
        return result["episode_return_mean"] / result["episode_len_mean"]

    assert per_step(results[0]) < -0.5
    assert per_step(results[-1]) > 0.6 * per_step(results[0])


class Nothing(Recall):
    """Never pays."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 0.0, *rest


@pytest.mark.parametrize("learns", [True, False])
def test_batches_without_reward_move_the_policy_only_if_asked_to(ray_local, learns):
    config = WholeEpisodePPOConfig().environment(Nothing).episodes(per_batch=8, max_steps=3)
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=4)
    config.rl_module(model_config={"encoder": "mlp", "encoder_dim": 8, "core_dim": 0})
    config.training(learn_without_reward=learns)
    algo = config.build_algo()
    before = algo.get_module().actor.weight.clone()
    result = algo.train()
    assert result["env_runners"]["num_env_steps_sampled"] == 24
    assert torch.equal(algo.get_module().actor.weight, before) != learns
    algo.stop()


# --- dealing episodes out -------------------------------------------------------------------------


def dealt(*workers, learners):
    """Training data of workers with episodes of these lengths; an episode is its length here."""
    shares = [[Share(list(own[i::learners]), []) for i in range(learners)] for own in workers]
    reports = [Report(summaries=[Summary(0.0, n, False) for n in own]) for own in workers]
    return WholeEpisodes.of(shares, reports)


def parts_of(data, learners, **kwargs):
    parts = data.shard(learners, **kwargs)
    for part, _ in parts:
        part.solve_refs()
    return [part.episodes for part, _ in parts], {k["num_total_minibatches"] for _, k in parts}


@pytest.mark.parametrize("learners", [1, 2, 3])
@pytest.mark.parametrize(
    "workers", [[(5, 6, 7, 8)], [(5,), (6,), (7,)], [(5, 6), (7,), (), (8, 9)]]
)
def test_every_episode_goes_to_one_learner_and_every_learner_gets_some(workers, learners):
    data = dealt(*workers, learners=learners)
    parts, counts = parts_of(data, learners, num_epochs=3, minibatch_size=20)
    assert sorted(e for part in parts for e in part) == sorted(e for own in workers for e in own)
    sizes = [len(part) for part in parts]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1
    # As many gradient steps for all, enough for the one with most; an episode has a step more.
    assert data.steps == [sum(n + 1 for n in part) for part in parts]
    assert counts == {-(-3 * max(data.steps) // 20)}


def test_minibatches_are_measured_by_the_mean_length():
    data = dealt((3, 5), (7, 9), learners=1)
    assert data.minibatch_size(1) == 7
    assert data.minibatch_size(4) == data.minibatch_size(9) == 28
