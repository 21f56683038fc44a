"""An iteration: gradient steps on recorded episodes, then some episodes to see how well it plays.

Nothing is learned from what it plays. `env_runners/…` are therefore measurements.
"""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)

from rllib_conspec.algorithm.decision_transformer.config import DecisionTransformerConfig
from rllib_conspec.algorithm.driver import RewardModelAlgorithm, learner_values
from rllib_conspec.algorithm.env_runner import EpisodeRunner, News
from rllib_conspec.algorithm.report import Report
from rllib_conspec.algorithm.seeding import derived_seed, seed_everything


class DecisionTransformer(RewardModelAlgorithm):
    """Learns from recordings which actions lead to which returns, and plays for a given one."""

    _told = 0  # grows over restores too: a worker that outlives one must listen

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> DecisionTransformerConfig:
        return DecisionTransformerConfig()

    @override(RewardModelAlgorithm)
    def _sample_and_learn(self) -> list[Report]:
        with self._iteration_metrics.timed("rl_update"):
            results = self.learner_group.update(
                # Learners read the recordings themselves: there is nothing to deal out.
                training_data=TrainingData(data_iterators=[None] * max(1, self._learners)),
                timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self._position},
                num_iters=self.config.updates_per_iteration,
            )
            self.metrics.aggregate(results, key=LEARNER_RESULTS)
        return self._play()

    @property
    def _learners(self) -> int:
        return self.config.num_learners

    def _play(self) -> list[Report]:
        """`episodes_per_batch` episodes, over all workers, by the newest weights."""
        news, position, seed = self._news(), self._position, self.config.seed
        answers = self.env_runner_group.foreach_env_runner(
            lambda runner: played(runner, position, news, seed),
            local_env_runner=self.config.num_env_runners == 0,
            timeout_seconds=self.config.sample_timeout_s,
        )
        self._raise_worker_failure()
        parts = [part for parts in answers for part in parts]
        self.metrics.aggregate([metrics for _, metrics, _ in parts], key=ENV_RUNNER_RESULTS)
        return [report for _, _, report in parts]

    def _news(self) -> dict[str, News]:
        asked = self.learner_group.foreach_learner(lambda learner: learner.weights())
        self._told += 1
        return {"weights": News(self._told, learner_values(asked)[0])}

    @override(RewardModelAlgorithm)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.env_runner is not None:  # at once: it may be asked to evaluate
            self.env_runner.hear(self._news())


def played(runner: EpisodeRunner, position: int, news: dict[str, News], seed: int | None) -> Any:
    """A worker's share of the episodes. What it draws depends on where training stands alone."""
    runner._seed = derived_seed(seed, "rollout", runner.worker_index, position)
    seed_everything(runner._seed)
    return runner.sample_shares(position, news)
