"""Check an experiment against RLlib, its algorithm and its environment, before Ray starts."""

from __future__ import annotations

import copy
import inspect
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rllib_conspec.cli import checkpoints
from rllib_conspec.cli.config_keys import check_config
from rllib_conspec.cli.environments import check_environment
from rllib_conspec.cli.experiment import Experiment
from rllib_conspec.cli.schema import check_keys, expected, fits, is_grid, show
from rllib_conspec.cli.stop import check_stop
from rllib_conspec.errors import OptionError, UserError, did_you_mean

# A sweep larger than this is checked by its first combinations only.
MAX_VARIANTS_CHECKED = 64
DEFAULT_MODULE_ID = "default_policy"


def validate(experiment: Experiment) -> list[Any]:
    """Check everything; returns the AlgorithmConfig of each `grid_search` combination."""
    try:
        return _validate(experiment)
    except OptionError as error:
        raise experiment.error(error) from error


def _validate(experiment: Experiment) -> list[Any]:
    check_stop(experiment.stop)
    if experiment.resources_per_trial:
        raise OptionError(
            "resources_per_trial",
            "RLlib works out a trial's resources itself; set num_env_runners, "
            "num_cpus_per_env_runner or num_gpus_per_learner in config.",
        )
    _check_storage(experiment.storage_path)
    algorithm = find_algorithm(experiment.run)
    default = experiment.algorithm_config or algorithm.get_default_config()
    check_config(experiment.config, default)
    some = list(itertools.islice(variants(experiment.config), MAX_VARIANTS_CHECKED))
    configs = [build_config(default, experiment.env, variant) for variant in some]
    for config, spaces in zip(configs, _check_environments(configs), strict=True):
        _check_values(config, spaces)
        if experiment.restore:
            _check_restore(experiment, config, spaces)
    return configs


def find_algorithm(run: Any) -> type:
    """The Algorithm class of a name such as "PPO" or "ConSpec" (a class is returned as it is)."""
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.registry import ALGORITHMS
    from ray.tune.registry import TRAINABLE_CLASS, _global_registry, get_trainable_cls

    import rllib_conspec.algorithm  # noqa: F401  (registers ConSpec)

    if inspect.isclass(run):
        return run
    names = [*ALGORITHMS, "ConSpec", "WholeEpisodePPO"]
    if run not in names and not _global_registry.contains(TRAINABLE_CLASS, run):
        raise OptionError("run", f"unknown algorithm {show(run)}.{did_you_mean(run, names)}")
    try:
        algorithm = get_trainable_cls(run)
    except ImportError as error:
        raise OptionError("run", f"{run} cannot be imported: {error}") from error
    if not (inspect.isclass(algorithm) and issubclass(algorithm, Algorithm)):
        raise OptionError("run", f"{show(run)} is not an RLlib algorithm.")
    return algorithm


def build_config(default: Any, env: Any, settings: Mapping[str, Any]) -> Any:
    """The AlgorithmConfig of a trial, with the sections `conspec` and `model_config` checked."""
    from rllib_conspec.retrospection.options import ConSpecOptions

    config = default.copy(copy_frozen=False)
    section = "config.model_config"
    try:
        _check_model_config(settings.get("model_config", {}), config)
        section = "config.conspec"
        if "conspec" in settings:
            ConSpecOptions.from_dict(settings["conspec"])
        section = "config"
        config.update_from_dict(tune_config(default, env, settings))
    except OptionError as error:
        raise error.within(section) from error
    except Exception as error:
        raise OptionError("config", _one_line(error)) from error
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


def variants(config: Any) -> Iterator[Any]:
    """Every combination of the `grid_search` values in `config`, at any depth."""
    if is_grid(config):
        for value in config["grid_search"]:
            yield from variants(value)
    elif isinstance(config, Mapping):
        for values in itertools.product(*(variants(value) for value in config.values())):
            yield dict(zip(config, values, strict=True))
    else:
        yield config


def _check_storage(storage_path: str) -> None:
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


def _check_values(config: Any, spaces: tuple[Any, Any] | None) -> None:
    """The algorithm's own opinion, on a copy: `validate()` fills in what depends on other options.

    Our networks are built once: an encoder that does not fit the observations is found here.
    """
    from rllib_conspec.algorithm.config import EpisodesConfig

    config = config.copy(copy_frozen=False)
    section = "config"
    try:
        config.validate()
        if isinstance(config, EpisodesConfig) and spaces is not None:
            section = "config.model_config"
            config.get_rl_module_spec(spaces={DEFAULT_MODULE_ID: spaces}).build()
            section = "config.conspec"
            if (model := config.get_reward_model()) is not None:
                model.scorer(spaces[0].shape)
    except OptionError as error:
        raise error.within(section) from error
    except Exception as error:
        raise OptionError(section, _one_line(error)) from error


def _check_model_config(model_config: Mapping[str, Any], config: Any) -> None:
    """Names and types of `model_config`: our policies', or RLlib's DefaultModelConfig."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    from rllib_conspec.algorithm.config import EpisodesConfig
    from rllib_conspec.networks import MODEL_CONFIG_KEYS

    if config._rl_module_spec is not None:
        return  # a module of the user's own, with keys of its own
    ours = isinstance(config, EpisodesConfig)
    known = MODEL_CONFIG_KEYS if ours else DefaultModelConfig.__annotations__
    check_keys(model_config, known)
    for key, value in model_config.items():
        if not fits(known[key], value):
            raise OptionError(key, f"expected {expected([known[key]])}, got {show(value)}.")


def _check_environments(configs: list[Any]) -> list[tuple[Any, Any] | None]:
    """The spaces of every config's environment, each different one built once.

    None for environment classes and registered creators: how to build those is the user's affair.
    """
    from ray.tune.registry import ENV_CREATOR, _global_registry

    built: list[tuple[Any, Any]] = []
    spaces: list[tuple[Any, Any] | None] = []
    for config in configs:
        if not isinstance(config.env, str) or _global_registry.contains(ENV_CREATOR, config.env):
            spaces.append(None)
            continue
        key = (config.env, dict(config.env_config))
        found = next((result for known, result in built if known == key), None)
        if found is None:
            found = check_environment(*key)
            built.append((key, found))
        spaces.append(found)
    return spaces


def _one_line(error: Exception) -> str:
    """One line from an exception of RLlib, whose messages can run over many."""
    text, _, _ = " ".join(str(error).split()).partition(" To suppress all validation errors")
    text = text or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
