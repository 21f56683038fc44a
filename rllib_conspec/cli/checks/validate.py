"""Check an experiment against RLlib, its algorithm and its environment, before Ray starts."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllib_conspec.annotations import expected, fits, show
from rllib_conspec.cli.checks import checkpoints
from rllib_conspec.cli.checks.algorithms import find_algorithm
from rllib_conspec.cli.checks.config_keys import check_config
from rllib_conspec.cli.checks.environments import check_environment, in_experiment
from rllib_conspec.cli.checks.experiment import Experiment, deep_merge
from rllib_conspec.cli.checks.memory import check_memory
from rllib_conspec.cli.checks.networks import count_parameters
from rllib_conspec.cli.checks.schema import check_keys, one_line
from rllib_conspec.cli.checks.space import cases
from rllib_conspec.cli.checks.stop import check_metric, check_stop
from rllib_conspec.cli.checks.sweep import check_same_sizes, check_sweep, sampled_in
from rllib_conspec.cli.checks.values import check_finite, infinite_options
from rllib_conspec.errors import OptionError, UserError

# Every value of a sweep is checked, and so many combinations of them.
MAX_VARIANTS_CHECKED = 64
Spaces = tuple[Any, Any]  # of observations and actions


def validate(experiment: Experiment, *, here: bool = True) -> list[Any]:
    """Check everything; returns the AlgorithmConfig of each combination looked at.

    `here`: it is this machine that will train, so that its memory has to be enough.
    """
    try:
        return _validate(experiment, here)
    except OptionError as error:
        raise experiment.error(error) from error


def _validate(experiment: Experiment, here: bool) -> list[Any]:
    if experiment.resources_per_trial:
        raise OptionError(
            "resources_per_trial",
            "RLlib works out a trial's resources itself; set num_env_runners, "
            "num_cpus_per_env_runner or num_gpus_per_learner in config.",
        )
    check_storage(experiment.storage_path)
    algorithm = find_algorithm(experiment.run)
    default = experiment.algorithm_config or algorithm.get_default_config()
    settings = deep_merge(sampled_in(experiment.algorithm_config), experiment.config)
    check_config(settings, default)
    if experiment.algorithm_config:
        _check_numbers_of(experiment.algorithm_config, algorithm.get_default_config())
    check_sweep(experiment)
    some = cases(settings, MAX_VARIANTS_CHECKED)
    configs = [build_config(default, experiment.env, variant) for variant in some]
    success = [config.success for config in configs if hasattr(config, "success")]
    check_stop(experiment.stop, reward_models(configs), success)
    check_metric(experiment.metric, "metric", reward_models(configs), success)
    check_same_sizes(experiment, [checkpoints.weight_sizes(config) for config in configs])
    checked: list[tuple[Any, Spaces | None]] = []
    for config in configs:
        copied, spaces = _check_values(config, checked)
        checked.append((copied, spaces))
        if spaces is not None:
            parameters = count_parameters(copied, spaces)
            if here:
                check_memory(parameters)
        if experiment.restore:
            _check_restore(experiment, config, spaces)
        else:
            _check_needs_nothing_trained(config)
    return configs


def reward_models(configs: list[Any]) -> list[type]:
    """The classes of the reward models of any of these configurations, each once."""
    found = [
        model
        for config in configs
        if hasattr(config, "reward_models_of")
        for model in config.reward_models_of().values()
    ]
    return list(dict.fromkeys(found))


def build_config(default: Any, env: Any, settings: Mapping[str, Any]) -> Any:
    """The AlgorithmConfig of a trial, with options of reward models and `model_config` checked."""
    config = default.copy(copy_frozen=False)
    section = "config.model_config"
    try:
        _check_model_config(settings.get("model_config", {}), config)
        section = "config"
        config.update_from_dict(tune_config(default, env, settings))
    except OptionError as error:
        raise error.within(section) from error
    except Exception as error:
        raise OptionError("config", one_line(error)) from error
    return config


def tune_config(default: Any, env: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` as `update_from_dict` wants them: with `env`, and `model_config` where it goes."""
    from rllib_conspec.algorithm.config import RewardModelConfig

    settings = copy.deepcopy(dict(settings))
    if env is not None:
        settings["env"] = env
    # RLlib has no setter for model_config; our own configs have.
    if "model_config" in settings and not isinstance(default, RewardModelConfig):
        settings["_model_config"] = settings.pop("model_config")
    return settings


def check_storage(storage_path: str) -> None:
    if "://" in storage_path:
        return
    path = Path(storage_path).expanduser().absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise OptionError("storage_path", f"{existing} is not a directory.")
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise OptionError("storage_path", f"{storage_path} is not writable.") from error


def _check_restore(experiment: Experiment, config: Any, spaces: tuple[Any, Any] | None) -> None:
    try:
        checkpoint = checkpoints.find(experiment.restore)
        checkpoints.check_fits(checkpoint, find_algorithm(experiment.run), config, spaces)
    except OptionError:
        raise
    except UserError as error:
        raise OptionError("restore", str(error)) from error


def _check_needs_nothing_trained(config: Any) -> None:
    from rllib_conspec.auxiliary import find_loss

    for name in getattr(config, "auxiliary", {}):
        if find_loss(name).of_a_trained_policy:
            raise OptionError(
                "restore",
                f"the auxiliary loss {name} is for a policy that is trained already; name its "
                "checkpoint (restore: results/…), or leave the loss out.",
            )


def _check_numbers_of(config: Any, default: Any) -> None:
    """The numbers of a Python file's configuration, of which only the result is known."""
    try:
        check_finite(config.to_dict(), infinite_options(default.to_dict()))
    except OptionError as error:
        raise error.within("config") from error


def _check_values(
    config: Any, checked: list[tuple[Any, Spaces | None]]
) -> tuple[Any, Spaces | None]:
    """The algorithm's own opinion, on a copy: `validate()` fills in what depends on other options.

    `checked`: what this returned for other combinations; each environment is built once. Spaces are
    None for environment classes and registered creators: how to build those is the user's affair.
    """
    from ray.tune.registry import ENV_CREATOR, _global_registry

    from rllib_conspec.algorithm.config_episodes import EpisodesConfig

    ours = isinstance(config, EpisodesConfig)
    config = config.copy(copy_frozen=False)
    if ours and checked:  # it looks again if the environment is another one
        config.facts, config._looked_at = checked[-1][0].facts, checked[-1][0]._looked_at
    try:
        config.validate()
    except OptionError as error:
        raise in_experiment(error) from error
    except Exception as error:
        raise OptionError("config", one_line(error)) from error
    if ours:
        return config, (config.facts.observation_space, config.facts.action_space)
    if not isinstance(config.env, str) or _global_registry.contains(ENV_CREATOR, config.env):
        return config, None
    for other, spaces in checked:
        if (other.env, other.env_config) == (config.env, config.env_config):
            return config, spaces
    return config, check_environment(config.env, config.env_config)


def _check_model_config(model_config: Mapping[str, Any], config: Any) -> None:
    """Names and types of `model_config`: our policies', or RLlib's DefaultModelConfig."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    from rllib_conspec.algorithm.config import RewardModelConfig
    from rllib_conspec.networks import MODEL_CONFIG_KEYS

    if config._rl_module_spec is not None:
        return  # a module of the user's own, with keys of its own
    ours = isinstance(config, RewardModelConfig) and config.has_ours_for(model_config)
    known = MODEL_CONFIG_KEYS if ours else DefaultModelConfig.__annotations__
    check_keys(model_config, known)
    for key, value in model_config.items():
        if not fits(known[key], value):
            raise OptionError(key, f"expected {expected([known[key]])}, got {show(value)}.")
