"""RND leads a policy that is paid by nobody else to where PPO alone does not come.

A lock of one-hot dials: one action of four turns the next one, every other turns all of them back.
By chance each is reached a quarter as often as the one before it. Where nothing is paid, PPO's
advantages are noise. (By default such batches are not learned from; here they are.)
"""

import gymnasium as gym
import numpy as np

from rllib_conspec import WholeEpisodePPOConfig

DIALS = 12
ITERATIONS, LATE = 60, 20


class Lock(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (DIALS + 1,), np.float32)
    action_space = gym.spaces.Discrete(4)
    combination = np.random.default_rng(0).integers(4, size=DIALS)

    def __init__(self, config=None):
        self.turned = 0

    def _observe(self):
        return np.eye(DIALS + 1, dtype=np.float32)[self.turned]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turned = 0
        return self._observe(), {}

    def step(self, action):
        right = self.turned < DIALS and action == self.combination[self.turned]
        self.turned = self.turned + 1 if right else 0
        return self._observe(), 0.0, False, False, {}


def dials_seen(built, **models):
    """How many different observations the late iterations have."""
    algo = built(
        WholeEpisodePPOConfig()
        .rewards(models={"tiny:States": {}} | models)
        .environment(Lock)
        .episodes(per_batch=16, max_steps=24)
        .env_runners(num_envs_per_env_runner=16)
        .rl_module(model_config={"encoder_dim": 32, "core_dim": 0})
        .training(lr=2e-3, learn_without_reward=True)
        .debugging(seed=3)
    )
    for iteration in range(ITERATIONS):
        if iteration == ITERATIONS - LATE:
            algo.learner_group._learner.reward_model.models["tiny:States"].seen.clear()
        result = algo.train()
    return result["states"]["seen"]


def test_rnd_opens_more_of_a_lock_than_ppo(built):
    ppo = dials_seen(built)
    rnd = dials_seen(built, rnd={"dim": 32, "lr": 0.001})
    print(f"\ndifferent observations of {DIALS + 1}: RND {rnd}, PPO {ppo}")
    assert rnd >= ppo + 3
