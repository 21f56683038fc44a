"""Configuration: reward models for any algorithm.

A mixin for any RLlib `AlgorithmConfig`. Every option is a real field with a setter that checks
it; a mistake is answered by an `OptionError` that names the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils import force_list
from ray.rllib.utils.annotations import override

from rllib_conspec import environments
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.extendable import check_settings
from rllib_conspec.algorithm.learner import with_reward_model_learner
from rllib_conspec.algorithm.learner_group import WatchedLearners
from rllib_conspec.algorithm.other_policies import our_policy
from rllib_conspec.algorithm.policy import (
    VALUES,
    VIEW,
    core_of,
    default_view,
)
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.algorithm.settings import (
    check_model_config,
    check_reward_scale,
    check_whole_number,
    is_sampler,
    without_samplers,
)
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.networks import MODEL_CONFIG_KEYS
from rllib_conspec.networks.cores.base import Core
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models.base import RewardModel, Setting
from rllib_conspec.reward_models.together import Together
from rllib_conspec.success import RELATIVE, success_function

PRESETS = ("few_successes", "paper", "control", "atari")
LEAST_SEQUENCE = 20  # steps to learn what to remember over, where pieces are shorter


class RewardModelConfig(AlgorithmConfig):
    """Any algorithm's configuration, with our rollout worker and a place for reward models."""

    # Whether what a reward model pays may have a value stream of its own.
    has_own_stream: ClassVar[bool] = False
    # Keys of a configuration that are short for `reward_models.<key>`.
    short_forms: ClassVar[tuple[str, ...]] = ()

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.env_runner_cls = EpisodeRunner
        self.reward_models: dict[str, dict[str, Any]] = {}
        self.success: str = "sparse"
        self.reward_scale: float | str = 1.0
        self.preset: str = PRESETS[0]
        self.episodes_per_batch: int | None = None
        self.episodes_per_update: int = 16
        self.max_pay_age: int | None = None
        self.worker_timeout_s: float = 300.0
        self.facts: environments.Facts | None = None  # what looking at the environment found
        self.observation_key: str | None = None

    def rewards(
        self,
        *,
        success: str = NotProvided,
        reward_scale: float | str = NotProvided,
        models: Mapping[str, Mapping[str, Any]] = NotProvided,
        preset: str = NotProvided,
        episodes_per_update: int = NotProvided,
        max_pay_age: int | None = NotProvided,
        worker_timeout_s: float = NotProvided,
    ) -> RewardModelConfig:
        """Set what counts as success, and who pays the agent besides the environment.

        Args:
            success: `sparse` (any positive return), `goal` (`info["is_success"]`), `top_k` (the
                best of a batch; there is no success rate then), or the import path
                `package.module:function` of a function of an `Episode`.
            reward_scale: What the environment's rewards are multiplied by where the policy learns
                from them, or `sign`: it learns from their sign. What reward models pay is added to
                that. Returns in metrics, success and the ranking of `top_k` are of the rewards as
                they are.
            models: Reward models by name or import path, each with its options; laid over those
                that are set.
            preset: Values that the options of reward models start from: `few_successes`, `paper`,
                `control` or `atari`.
            episodes_per_update: With algorithms that take a few steps at a time: finished episodes
                that make an update of the reward models.
            max_pay_age: With algorithms that have a replay buffer: how many updates of the reward
                models old the pay of an episode may be when it is sampled. An older one is paid
                again, by the newest snapshot; 1: whenever the models have learned since. None: the
                pay of its time stays.
            worker_timeout_s: How long to wait while no rollout worker answers.
        """
        if preset is not NotProvided:
            self._use_preset(preset)
        if success is not NotProvided:
            self.success = success
        if reward_scale is not NotProvided:
            self.reward_scale = reward_scale
        if models is not NotProvided:
            merged = {k: dict(v) for k, v in self.reward_models.items()}
            for name, options in models.items():
                options_of(name, without_samplers(options), self.preset)
                whole = merged.get(name, {}) | dict(options)
                found = options_of(name, without_samplers(whole), self.preset)
                # As the options have them: a file is named by its full path, wherever it is read.
                merged[name] = {
                    key: value if is_sampler(value) else getattr(found, key)
                    for key, value in whole.items()
                }
            self.reward_models = merged
        if episodes_per_update is not NotProvided:
            self.episodes_per_update = episodes_per_update
        if max_pay_age is not NotProvided:
            self.max_pay_age = max_pay_age
        if worker_timeout_s is not NotProvided:
            self.worker_timeout_s = worker_timeout_s
        return self

    def _use_preset(self, preset: str) -> None:
        if preset not in PRESETS:
            raise OptionError(
                "preset",
                f"must be one of {', '.join(PRESETS)}, not {preset!r}."
                + did_you_mean(str(preset), PRESETS),
            )
        self.preset = preset

    def reward_models_of(self) -> dict[str, type[RewardModel]]:
        """The classes of the reward models, by the names that the configuration calls them."""
        return {name: find_model(name) for name in self.reward_models}

    @property
    def own_gamma(self) -> float | None:
        """Of the value stream that a reward model has for itself, if one has."""
        for name, options in self.reward_models.items():
            known = options_of(name, without_samplers(options), self.preset)
            gamma = find_model(name).own_stream(known)
            if gamma is not None:
                return gamma
        return None

    def get_reward_model(
        self, observation_space: spaces.Space, action_space: spaces.Space, device: Any = "cpu"
    ) -> Together | None:
        """The reward models to train and to pay with, if any."""
        if not self.reward_models:
            return None
        setting = Setting(
            observation_space,
            action_space,
            self.gamma,
            plays=self.facts.plays if self.facts else "",
            version=self.facts.version if self.facts else "",
            best_of=self._best_of,
            reward_scale=self.reward_scale,
            outputs=self._outputs,
            device=device,
            # Equal on all learners, so that what their models hold stays equal.
            seed=derived_seed(self.seed, "reward_model"),
            **self.view_of(observation_space),
        )
        try:
            return Together(self.reward_models, setting, self.preset)
        except OptionError as error:
            raise error.within("reward_models") from error

    @property
    def _outputs(self) -> tuple[str, ...]:
        """What the policy gives with every step besides an action."""
        given = core_of(self._model_config).gives if self.our_networks else ()
        return (*given, VALUES) if given else ()

    @property
    def _best_of(self) -> int | None:
        """Of how many episodes the best succeed, where success is relative."""
        if self.success != RELATIVE:
            return None
        return self.episodes_per_batch or self.episodes_per_update

    @property
    def replays(self) -> bool:
        """Whether episodes are learned from again and again, out of a replay buffer."""
        return bool(getattr(self, "replay_buffer_config", None))

    @property
    def pays_again(self) -> bool:
        """Whether replayed episodes may be paid again."""
        return self.replays and self.max_pay_age is not None

    def view_of(self, space: spaces.Box) -> dict[str, Any]:
        """How observations are to be read."""
        if self.facts is not None:
            return {key: getattr(self.facts, key) for key in VIEW}
        return default_view(space)

    @property
    def own_connectors(self) -> bool:
        """Whether the user has connectors between environment and policy."""
        return (
            self._env_to_module_connector is not None or self._module_to_env_connector is not None
        )

    @property
    def own_callbacks(self) -> bool:
        return any(c is not RLlibCallback for c in force_list(self.callbacks_class)) or any(
            value for name, value in vars(self).items() if name.startswith("callbacks_on_")
        )

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type:
        return with_reward_model_learner(super().get_default_learner_class())

    @override(AlgorithmConfig)
    def build_learner_group(
        self,
        *,
        env: Any = None,
        spaces: Any = None,
        rl_module_spec: Any = None,
        placement_group: Any = None,
    ) -> WatchedLearners:
        spec = rl_module_spec or self.get_multi_rl_module_spec(env=env, spaces=spaces)
        return WatchedLearners(
            config=self.copy(), module_spec=spec, placement_group=placement_group
        )

    @property
    def our_networks(self) -> bool:
        """Whether the policy is one of ours."""
        return self.has_ours_for(self._model_config)

    def has_ours_for(self, model_config: Any) -> bool:
        """Whether this `model_config` asks for one of our policies. RLlib's algorithms have its own
        unless a key of ours is among its keys, and there is one for them.
        """
        ours = MODEL_CONFIG_KEYS.keys() - DefaultModelConfig.__annotations__.keys()
        asked = isinstance(model_config, Mapping) and not ours.isdisjoint(model_config)
        return asked and our_policy(type(self)) is not None

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        spec = super().get_default_rl_module_spec()
        if self.our_networks:
            spec.module_class = our_policy(type(self))
        return spec

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        included = super()._model_config_auto_includes
        return included | ({"max_seq_len": self._sequence} if self.our_networks else {})

    @property
    def _sequence(self) -> int:
        """Steps that a policy with a memory is trained on in one go."""
        # A piece, and the step that RLlib adds for the value after it: nothing is padded.
        return max(LEAST_SEQUENCE, self.get_rollout_fragment_length() + 1)

    @override(AlgorithmConfig)
    def rl_module(self, *, model_config: Any = NotProvided, **kwargs: Any) -> RewardModelConfig:
        """RLlib's, but options of the policy are laid over those that are set."""
        if isinstance(model_config, dict) and isinstance(self._model_config, dict):
            model_config = self._model_config | model_config
        return super().rl_module(model_config=model_config, **kwargs)

    @override(AlgorithmConfig)
    def update_from_dict(self, config_dict: dict[str, Any]) -> RewardModelConfig:
        """RLlib's, plus our sections and `model_config`, for which RLlib has no key. The preset
        comes first: single options are laid over it.
        """
        rest = dict(config_dict)
        if "preset" in rest:
            self.rewards(preset=rest.pop("preset"))
        if "model_config" in rest:
            self.rl_module(model_config=rest.pop("model_config"))
        for section in ("reward_models", *self.short_forms):
            if section in rest:
                given = rest.pop(section)
                try:
                    self.rewards(models=given if section == "reward_models" else {section: given})
                except OptionError as error:
                    raise (
                        error.within("reward_models") if section == "reward_models" else error
                    ) from error
        return super().update_from_dict(rest)

    @override(AlgorithmConfig)
    def validate(self) -> None:
        check_settings(self)
        success_function(self.success)
        check_reward_scale(self.reward_scale)
        for name, options in self.reward_models.items():
            try:
                options_of(name, options, self.preset)
            except OptionError as error:
                raise error.within("reward_models") from error
        if self.own_gamma is not None and not self.has_own_stream:
            raise OptionError(
                "reward_models",
                "a value stream of its own is for algorithms on whole episodes: run "
                "WholeEpisodePPO, or leave own_stream out.",
            )
        check_whole_number("episodes_per_update", self.episodes_per_update, least=1)
        self._check_max_pay_age()
        if self.our_networks:
            check_model_config(self._model_config)
            self._check_core(core_of(self._model_config))
        super().validate()

    def _check_core(self, core: type[Core]) -> None:
        if core.reads_last:
            raise OptionError(
                "model_config.core",
                "reads the last action and reward, which only algorithms on whole episodes tell: "
                "run WholeEpisodePPO, or use another core.",
            )

    def _check_max_pay_age(self) -> None:
        if self.max_pay_age is None:
            return
        check_whole_number("max_pay_age", self.max_pay_age, least=1)
        if not self.replays:
            raise OptionError(
                "max_pay_age", "is for algorithms with a replay buffer (DQN, SAC): leave it out."
            )
