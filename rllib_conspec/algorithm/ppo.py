"""PPO on batches of whole episodes, with the paper's hyperparameters: the backbone and the
baseline.
"""

from __future__ import annotations

import math
from typing import Any

from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core import ALL_MODULES
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)

from rllib_conspec.algorithm.algorithm import AHEAD, RewardModelAlgorithm
from rllib_conspec.algorithm.config import EpisodesConfig
from rllib_conspec.algorithm.learner import EpisodePPOLearner
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.policy import MODEL_CONFIG


class WholeEpisodePPOConfig(EpisodesConfig, PPOConfig):
    """Defaults of the paper's appendix; RLlib's differ in every one of them."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or WholeEpisodePPO)
        self.lr = 2e-4
        self.adam_eps: float = 1e-5
        self.gamma = 0.99
        self.lambda_ = 0.95
        self.clip_param = 0.08
        self.vf_loss_coeff = 0.5
        self.vf_clip_param = float("inf")
        self.entropy_coeff = 0.02
        self.num_epochs = 4
        self.grad_clip = 0.5
        self.grad_clip_by = "global_norm"
        self.use_kl_loss = False
        # Off: batches without any reward are not learned from. Their advantages are the value
        # function's noise, which PPO scales up to unit size; the policy then drifts at random.
        self.learn_without_reward: bool = True
        # Above 0: the policy is asked to do the same when colours are swapped and inverted.
        self.colour_coeff: float = 0.0
        self.num_env_runners = 2
        self.num_envs_per_env_runner = 8

    @override(PPOConfig)
    def training(
        self,
        *,
        adam_eps: float = NotProvided,
        learn_without_reward: bool = NotProvided,
        colour_coeff: float = NotProvided,
        **kwargs: Any,
    ) -> WholeEpisodePPOConfig:
        """PPO's settings, and:

        Args:
            adam_eps: Epsilon of the policy's Adam.
            learn_without_reward: Whether to update the policy on batches in which nothing was paid.
            colour_coeff: Weight of a loss that keeps policy and value the same on pictures with
                swapped and inverted colours. 0, the paper's: none. It doubles the policy's part of
                an iteration.
        """
        super().training(**kwargs)
        if adam_eps is not NotProvided:
            self.adam_eps = adam_eps
        if learn_without_reward is not NotProvided:
            self.learn_without_reward = learn_without_reward
        if colour_coeff is not NotProvided:
            self.colour_coeff = colour_coeff
        return self

    @override(PPOConfig)
    def validate(self) -> None:
        super().validate()
        weight = self.colour_coeff
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight >= 0:
            raise OptionError("colour_coeff", f"must be a number of at least 0, not {weight!r}.")
        if weight and (MODEL_CONFIG | self._model_config)["encoder"] == "mlp":
            raise OptionError("colour_coeff", "is for pictures, and encoder mlp reads vectors.")

    @override(PPOConfig)
    def get_default_learner_class(self) -> type:
        return EpisodePPOLearner


class _EpisodePPO(PPO):
    """PPO's training step in phases that are timed one by one."""

    @override(PPO)
    def training_step(self) -> None:
        sampled = self._sample()
        episodes = [episode for batch, _ in sampled for episode in batch]
        if not episodes:
            return
        self.metrics.aggregate([results for _, results in sampled], key=ENV_RUNNER_RESULTS)
        with self._timed("rl_update"):
            if self.config.learn_without_reward or any(e.rewards.data.any() for e in episodes):
                self._update(episodes)

    def _sample(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """Every worker's episodes and metrics: those played ahead, or new ones."""
        limit = self.config.sample_timeout_s
        ahead = self.env_runner_group.fetch_ready_async_reqs(tags=AHEAD, timeout_seconds=limit)
        if ahead:
            return [sampled for _, sampled in sorted(ahead, key=lambda answer: answer[0])]
        return self.env_runner_group.foreach_env_runner(
            lambda runner, position=self._position: runner.sample_at(position),
            local_env_runner=self.config.num_env_runners == 0,
            timeout_seconds=limit,
        )

    def _update(self, episodes: list[Any]) -> None:
        results = self.learner_group.update(
            training_data=WholeEpisodes(episodes=episodes),
            timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self._position},
            num_epochs=self.config.num_epochs,
            minibatch_size=self._minibatch_size(episodes),
            shuffle_batch_per_epoch=self.config.shuffle_batch_per_epoch,
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        self.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.learner_group,
            policies=set(results[0]) - {ALL_MODULES},
            inference_only=True,
        )

    def _minibatch_size(self, episodes: list[Any]) -> int:
        """`episodes_per_minibatch` in RLlib's measure: that share of the batch's steps.

        RLlib cuts minibatches in proportion to steps, each episode counting one more than it has.
        """
        count = min(self.config.episodes_per_minibatch, len(episodes))
        return math.ceil(count * sum(len(e) + 1 for e in episodes) / len(episodes))


class WholeEpisodes(TrainingData):
    """Training data that is dealt out to learners by whole episodes; RLlib would cut one in two."""

    @override(TrainingData)
    def shard(self, num_shards: int, **kwargs: Any) -> list[tuple[TrainingData, dict]]:
        shards = [self.episodes[i::num_shards] for i in range(num_shards)]
        # Equal for all, or the learners would wait for each other's gradients for ever.
        steps = max(sum(len(e) + 1 for e in shard) for shard in shards)
        count = math.ceil(kwargs.get("num_epochs", 1) * steps / kwargs["minibatch_size"])
        return [(TrainingData(episodes=s), {"num_total_minibatches": count}) for s in shards]


class WholeEpisodePPO(RewardModelAlgorithm, _EpisodePPO):
    """Plain PPO on the same workers, policies and batches as ConSpec: what ConSpec is compared
    with.
    """

    @classmethod
    @override(PPO)
    def get_default_config(cls) -> WholeEpisodePPOConfig:
        return WholeEpisodePPOConfig()
