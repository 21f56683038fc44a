"""Configuration: whole-episode batches, and the options of ConSpec.

Mixins for any RLlib `AlgorithmConfig`. Every option is a real field with a setter that checks it; a
mistake is answered by an `OptionError` that names the option.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.learner import with_reward_model_learner
from rllib_conspec.algorithm.reward_model import RewardModel
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.networks import MODEL_CONFIG_KEYS
from rllib_conspec.networks.encoders import ENCODERS
from rllib_conspec.networks.policy import EpisodePolicy
from rllib_conspec.retrospection.conspec import ConSpecModel
from rllib_conspec.retrospection.options import ConSpecOptions


class RewardModelConfig(AlgorithmConfig):
    """Any algorithm's configuration, with our rollout worker and a place for a reward model."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.env_runner_cls = EpisodeRunner
        self.episodes_per_batch: int | None = None
        self.episodes_per_update: int = 16
        self.worker_timeout_s: float = 300.0
        self.sample_ahead: bool = False

    def get_reward_model(self) -> RewardModel | None:
        """The reward model to train and to pay with, if any."""
        return None

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type:
        return with_reward_model_learner(super().get_default_learner_class())

    @override(AlgorithmConfig)
    def update_from_dict(self, config_dict: dict[str, Any]) -> RewardModelConfig:
        """RLlib's, plus `model_config`, merged into what is set; RLlib has no key for it."""
        rest = dict(config_dict)
        if "model_config" in rest:
            given = rest.pop("model_config")
            before = self._model_config if isinstance(self._model_config, dict) else {}
            self.rl_module(model_config=before | given if isinstance(given, dict) else given)
        return super().update_from_dict(rest)


class EpisodesConfig(RewardModelConfig):
    """Batches and minibatches of whole episodes, and our policies."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.batch_mode = "complete_episodes"
        self.episodes_per_batch = 16
        self.episodes_per_minibatch: int = 4
        self.max_episode_steps: int | None = None
        # What `validate` found out by itself: option → (value before, value found).
        self._found: dict[str, tuple[Any, Any]] = {}
        self.gym_env_vectorize_mode = "vector_entry_point"

    def episodes(
        self,
        *,
        per_batch: int = NotProvided,
        per_minibatch: int = NotProvided,
        max_steps: int | None = NotProvided,
        sample_ahead: bool = NotProvided,
    ) -> EpisodesConfig:
        """Set how many whole episodes make a training batch (B) and a minibatch.

        Args:
            per_batch: Episodes per iteration, over all workers.
            per_minibatch: Episodes per gradient step.
            max_steps: Longest episode. By default it is asked of the environment.
            sample_ahead: Let remote workers play the next batch while the reward model learns. It
                hides the shorter of the two, and pays with a snapshot that is one iteration older
                than in Algorithm 1, whose order is the default.
        """
        if per_batch is not NotProvided:
            self.episodes_per_batch = per_batch
        if per_minibatch is not NotProvided:
            self.episodes_per_minibatch = per_minibatch
        if max_steps is not NotProvided:
            self.max_episode_steps = max_steps
        if sample_ahead is not NotProvided:
            self.sample_ahead = sample_ahead
        return self

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=EpisodePolicy)

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        included = super()._model_config_auto_includes
        # One more than the longest episode: RLlib adds a step for the value after the last one.
        steps = self.max_episode_steps
        return included | ({"max_seq_len": steps + 1} if steps else {})

    @override(AlgorithmConfig)
    def validate(self) -> None:
        for option in ("episodes_per_batch", "episodes_per_minibatch"):
            _check_whole_number(option, getattr(self, option), least=1)
        if self.episodes_per_minibatch > self.episodes_per_batch:
            raise OptionError(
                "episodes_per_minibatch",
                f"is {self.episodes_per_minibatch}, more than episodes_per_batch "
                f"({self.episodes_per_batch}).",
            )
        if self.batch_mode != "complete_episodes":
            raise OptionError(
                "batch_mode", "must be complete_episodes: batches are whole episodes."
            )
        if self.max_episode_steps is not None:
            _check_whole_number("max_episode_steps", self.max_episode_steps, least=1)
        if self.sample_ahead and self.num_env_runners == 0 and not self.in_evaluation:
            raise OptionError("sample_ahead", "needs remote workers: set num_env_runners.")
        self._check_model_config()
        self._resolve_environment()
        steps = self.max_episode_steps + 1
        self.minibatch_size = self.episodes_per_minibatch * steps
        self.train_batch_size_per_learner = self.episodes_per_batch * steps
        super().validate()

    def _check_model_config(self) -> None:
        if not isinstance(self._model_config, dict):
            kind = type(self._model_config).__name__
            raise OptionError(
                "model_config", f"must be a mapping of {', '.join(MODEL_CONFIG_KEYS)}, not {kind}."
            )
        for key, value in self._model_config.items():
            if key not in MODEL_CONFIG_KEYS:
                raise OptionError(
                    f"model_config.{key}", "unknown option." + did_you_mean(key, MODEL_CONFIG_KEYS)
                )
            if not isinstance(value, MODEL_CONFIG_KEYS[key]) or isinstance(value, bool):
                kind = MODEL_CONFIG_KEYS[key].__name__
                raise OptionError(f"model_config.{key}", f"must be of type {kind}, not {value!r}.")
            if key == "encoder" and value not in ENCODERS:
                raise OptionError(
                    "model_config.encoder",
                    f"must be one of {', '.join(ENCODERS)}, not {value!r}."
                    + did_you_mean(value, ENCODERS),
                )
            if key.endswith("_dim"):
                _check_whole_number(f"model_config.{key}", value, least=int(key != "gru_dim"))

    def _resolve_environment(self) -> None:
        """Ask the environment how long its episodes are, and whether it comes vectorised."""
        for option, (before, found) in self._found.items():
            if getattr(self, option) == found:  # not set by anyone since
                setattr(self, option, before)
        self._found = {}
        steps, vectorised = _ask_environment(self.env, self.env_config)
        if not vectorised and self.gym_env_vectorize_mode == "vector_entry_point":
            self._find("gym_env_vectorize_mode", "sync")
        if self.max_episode_steps is None:
            if steps is None:
                raise OptionError(
                    "max_episode_steps", "is not known for this environment; set it in the config."
                )
            self._find("max_episode_steps", int(steps))

    def _find(self, option: str, value: Any) -> None:
        self._found[option] = (getattr(self, option), value)
        setattr(self, option, value)


def _ask_environment(env: Any, env_config: dict[str, Any]) -> tuple[int | None, bool]:
    """Steps of the longest episode (None: unknown), and whether there is a vector form."""
    if not isinstance(env, str) or (":" not in env and env not in gym.registry):
        return None, False  # a class, or registered with Ray Tune: only its author knows
    made = gym.make(env, **env_config)
    try:
        steps = getattr(made.unwrapped, "max_episode_steps", None)
        steps = steps or (made.spec.max_episode_steps if made.spec else None)
        return steps, made.spec is not None and made.spec.vector_entry_point is not None
    finally:
        made.close()


def _check_whole_number(option: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(option, f"must be a whole number of at least {least}, not {value!r}.")


class ConSpecMixinConfig(RewardModelConfig):
    """Adds `.conspec(...)`: ConSpec as the reward model."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.conspec_options: dict[str, Any] = {}

    def conspec(self, **options: Any) -> ConSpecMixinConfig:
        """Set options of ConSpec; see `rllib_conspec.retrospection.options.ConSpecOptions`."""
        merged = self.conspec_options | options
        ConSpecOptions.from_dict(merged)
        self.conspec_options = merged
        return self

    @override(RewardModelConfig)
    def get_reward_model(self) -> RewardModel:
        return ConSpecModel(ConSpecOptions.from_dict(self.conspec_options), self.gamma)

    @override(RewardModelConfig)
    def update_from_dict(self, config_dict: dict[str, Any]) -> ConSpecMixinConfig:
        rest = dict(config_dict)
        if "conspec" in rest:
            self.conspec(**rest.pop("conspec"))
        return super().update_from_dict(rest)

    @override(RewardModelConfig)
    def validate(self) -> None:
        ConSpecOptions.from_dict(self.conspec_options)
        super().validate()
