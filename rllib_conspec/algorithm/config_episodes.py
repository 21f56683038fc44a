"""Configuration: batches and minibatches of whole episodes, and our own policies."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.connectors.common import AddStatesFromEpisodesToBatch
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override

from rllib_conspec import environments
from rllib_conspec.algorithm.config import LEAST_SEQUENCE, RewardModelConfig
from rllib_conspec.algorithm.policy import OWN_STREAM, EpisodePolicy, core_of
from rllib_conspec.algorithm.settings import check_model_config, check_whole_number
from rllib_conspec.algorithm.telling import BeginAnew, TellLast
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.cores.base import Core


class EpisodesConfig(RewardModelConfig):
    """Batches and minibatches of whole episodes, and our policies."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.batch_mode = "complete_episodes"
        self.episodes_per_batch = 16
        self.episodes_per_minibatch: int = 4
        self.max_episode_steps: int | None = None
        self.epsilon: float = 0.0
        # The environment's own vector form where it has one that fits, else sync.
        self.gym_env_vectorize_mode = "vector_entry_point"
        self._looked_at: tuple | None = None  # what `facts` was found for

    def episodes(
        self,
        *,
        per_batch: int = NotProvided,
        per_minibatch: int = NotProvided,
        max_steps: int | None = NotProvided,
        observation_key: str | None = NotProvided,
        epsilon: float = NotProvided,
    ) -> EpisodesConfig:
        """Set how many whole episodes make a training batch (B) and a minibatch.

        Args:
            per_batch: Episodes per iteration, over all workers.
            per_minibatch: Episodes per gradient step.
            max_steps: Time limit of an episode. By default the environment's own.
            observation_key: Of Dict observations, the entry that the agent sees.
            epsilon: Share of the actions that are drawn evenly from all instead of by the policy,
                while it explores. Discrete actions only.
        """
        if per_batch is not NotProvided:
            self.episodes_per_batch = per_batch
        if per_minibatch is not NotProvided:
            self.episodes_per_minibatch = per_minibatch
        if max_steps is not NotProvided:
            self.max_episode_steps = max_steps
        if observation_key is not NotProvided:
            self.observation_key = observation_key
        if epsilon is not NotProvided:
            self.epsilon = epsilon
        return self

    @property
    def vectorize_mode(self) -> str:
        mode = getattr(self.gym_env_vectorize_mode, "value", self.gym_env_vectorize_mode)
        return "auto" if mode == "vector_entry_point" else mode

    @override(RewardModelConfig)
    def has_ours_for(self, model_config: Any) -> bool:
        return True

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=EpisodePolicy)

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        included = super()._model_config_auto_includes
        included |= {OWN_STREAM: True} if self.own_gamma is not None else {}
        return included | (self.view_of(self.facts.observation_space) if self.facts else {})

    @property
    @override(RewardModelConfig)
    def _sequence(self) -> int:
        # One more than the longest episode, as above.
        return self.facts.max_episode_steps + 1 if self.facts else LEAST_SEQUENCE

    @override(AlgorithmConfig)
    def validate(self) -> None:
        for option in ("episodes_per_batch", "episodes_per_minibatch"):
            check_whole_number(option, getattr(self, option), least=1)
        if self.episodes_per_minibatch > self.episodes_per_batch:
            raise OptionError(
                "episodes_per_minibatch",
                f"is {self.episodes_per_minibatch}, more than episodes_per_batch "
                f"({self.episodes_per_batch}).",
            )
        if self.num_learners > self.episodes_per_batch:
            raise OptionError(
                "episodes_per_batch",
                f"is {self.episodes_per_batch}; each of the {self.num_learners} learners needs an "
                "episode.",
            )
        if self.batch_mode != "complete_episodes":
            raise OptionError(
                "batch_mode", "must be complete_episodes: batches are whole episodes."
            )
        if self.max_episode_steps is not None:
            check_whole_number("max_episode_steps", self.max_episode_steps, least=1)
        check_model_config(self._model_config)
        self._look_at_environment()
        # Our connectors have no state that workers would have to share.
        self._dont_auto_sync_env_runner_states = not self.own_connectors
        self._check_epsilon()
        steps = self.facts.max_episode_steps + 1
        self.minibatch_size = self.episodes_per_minibatch * steps
        self.train_batch_size_per_learner = self.episodes_per_batch * steps
        super().validate()

    @override(RewardModelConfig)
    def _check_core(self, core: type[Core]) -> None:
        if core.reads_last and (self.own_connectors or self.own_callbacks):
            raise OptionError(
                "model_config.core",
                "reads the last action and reward, which does not work with connectors or "
                "callbacks of your own: leave them out, or use another core.",
            )

    @override(AlgorithmConfig)
    def build_env_to_module_connector(self, *args: Any, **kwargs: Any) -> Any:
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        if core_of(self._model_config).reads_last:
            pipeline.insert_after(AddStatesFromEpisodesToBatch, TellLast())
        return pipeline

    @override(AlgorithmConfig)
    def build_learner_connector(self, *args: Any, **kwargs: Any) -> Any:
        pipeline = super().build_learner_connector(*args, **kwargs)
        if core_of(self._model_config).reads_last:
            pipeline.insert_before(AddStatesFromEpisodesToBatch, BeginAnew())
        return pipeline

    def _check_epsilon(self) -> None:
        number = isinstance(self.epsilon, int | float) and not isinstance(self.epsilon, bool)
        if not number or not 0 <= self.epsilon <= 1:
            raise OptionError("epsilon", f"must be a number from 0 to 1, not {self.epsilon!r}.")
        if self.epsilon and not isinstance(self.facts.action_space, spaces.Discrete):
            raise OptionError("epsilon", "needs Discrete actions; this environment has others.")
        if self.epsilon and (self.own_connectors or self.own_callbacks):
            raise OptionError("epsilon", "does not work with connectors or callbacks of your own.")

    def _look_at_environment(self) -> None:
        mode = self.vectorize_mode
        limit, key = self.max_episode_steps, self.observation_key
        asked = (self.env, dict(self.env_config), limit, key, mode)
        if self._looked_at != asked:
            self.facts = environments.look(
                self.env,
                self.env_config,
                max_episode_steps=limit,
                observation_key=key,
                mode=mode,
            )
            self._looked_at = asked
