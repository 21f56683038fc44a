"""From a file and command-line flags to a list of experiments.

A YAML file maps experiment names to their settings; a Python file exposes `config` (an RLlib
AlgorithmConfig) and, if it likes, `stop`. A flag that was given overrides the file; a flag that was
not given changes nothing.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_conspec.annotations import expected, show
from rllib_conspec.cli.checks import strict_yaml
from rllib_conspec.cli.checks.schema import Key, check_section
from rllib_conspec.cli.checks.space import is_sampler
from rllib_conspec.errors import OptionError, UserError

EXPERIMENT_KEYS = {
    "run": Key((str,)),
    "env": Key((str,)),
    "stop": Key((dict,)),
    "config": Key((dict,)),
    "num_samples": Key((int,), min=1),
    "checkpoint_config": Key((dict,)),
    "storage_path": Key((str,)),
    "resources_per_trial": Key((dict,)),
    "restore": Key((str,)),
    "max_failures": Key((int,), min=-1),
    "time_budget_s": Key((float,), min=1),
    "metric": Key((str,)),
    "mode": Key((str,), choices=("max", "min")),
    "scheduler": Key((str, dict)),
    "search": Key((str, dict)),
    "max_concurrent": Key((int,), min=1),
}
CHECKPOINT_KEYS = {
    "num_to_keep": Key((int, type(None)), min=1),
    "checkpoint_score_attribute": Key((str, type(None))),
    "checkpoint_score_order": Key((str,), choices=("max", "min")),
    "checkpoint_frequency": Key((int,), min=0),
    "checkpoint_at_end": Key((bool,)),
}
DEFAULT_STORAGE = "results"
MAX_NAME = 200  # bytes: file systems take 255, and the time of a second run is added to it


@dataclass
class Experiment:
    """One experiment, after merging. `overrides` holds what the command line gave."""

    name: str
    run: Any = None
    env: Any = None
    stop: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    num_samples: int = 1
    checkpoint_config: dict[str, Any] = field(default_factory=dict)
    storage_path: str = DEFAULT_STORAGE
    resources_per_trial: dict[str, Any] | None = None
    restore: str | None = None
    max_failures: int = 0
    time_budget_s: float | None = None
    metric: str = "env_runners/episode_return_mean"  # what trials are compared by
    mode: str = "max"
    scheduler: str | dict[str, Any] = "fifo"
    search: str | dict[str, Any] = "random"
    max_concurrent: int | None = None
    source: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    algorithm_config: Any = None  # the object of a Python file, before --config

    def error(self, error: OptionError) -> UserError:
        """The error with its place: the flag it came from, or file and full path of the key."""
        section, *rest = error.option.split(".")
        given = self.overrides.get(section)
        if section in self.overrides and (
            not rest or (isinstance(given, Mapping) and rest[0] in given)
        ):
            flag = "--" + section.replace("_", "-")
            path = flag if not rest else f"{flag}: {'.'.join(rest)}"
            return UserError(f"{path}: {error.message}")
        place = f"{self.source}: {self.name}." if self.source else ""
        return UserError(f"{place}{error.option}: {error.message}")


def load_experiments(file: str | None, overrides: Mapping[str, Any]) -> list[Experiment]:
    """Read `file` (may be None when --run and --env are given) and lay `overrides` over it."""
    name = overrides.get("name")
    overrides = {key: value for key, value in overrides.items() if key != "name"}
    if file is None:
        if not overrides.get("run"):
            raise UserError("nothing to train: give a file (-f FILE) or --run and --env.")
        label = f"{overrides['run']}_{overrides.get('env', '')}".replace(":", "_")
        experiments = [Experiment(name=label.replace("/", "_"))]
    elif Path(file).suffix == ".py":
        experiments = [_from_python(file)]
    else:
        experiments = _from_yaml(file)
    if name is not None:
        if trouble := name_problem(name):
            raise UserError(f"--experiment-name: {trouble}")
        if len(experiments) > 1:
            names = ", ".join(experiment.name for experiment in experiments)
            raise UserError(f"--experiment-name: {file} holds several experiments: {names}.")
        experiments[0].name = name
    for experiment in experiments:
        _override(experiment, overrides)
        if name is not None:
            experiment.overrides["name"] = name
    return experiments


def name_problem(name: str) -> str | None:
    """Why `name` cannot be the name of the experiment's directory in the storage path, or None."""
    if not name.strip():
        return "the name of an experiment is empty."
    if "/" in name or name in (".", ".."):
        return (
            f"{show(name)} cannot be the name of an experiment: its directory is made in the "
            "storage path, so the name has no / in it (storage_path chooses the place)."
        )
    if not name.isprintable():
        return f"{name!r} cannot be the name of an experiment: it is no printable text."
    if len(os.fsencode(name)) > MAX_NAME:
        return f"the name of an experiment is longer than {MAX_NAME} bytes."
    return None


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid on top; mappings inside are merged, everything else replaced."""
    merged = copy.deepcopy(dict(base))
    for key, value in over.items():
        nested = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        # A sampler replaces a mapping and is replaced by one: halves of both mean nothing.
        if nested and not is_sampler(value) and not is_sampler(merged[key]):
            merged[key] = deep_merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def parse_mapping(text: str, flag: str) -> dict[str, Any]:
    """The mapping written in a flag such as --config '{"lr": 1e-4}' (JSON or YAML)."""
    value = strict_yaml.load(text, flag)
    if not isinstance(value, dict):
        raise UserError(f"{flag}: expected a mapping like '{{\"key\": 1}}', got {show(value)}.")
    return value


def parse_choice(text: str, flag: str) -> str | dict[str, Any]:
    """What is written in a flag such as --scheduler asha or --scheduler '{asha: {max_t: 50}}'."""
    value = strict_yaml.load(text, flag)
    return value if isinstance(value, str) else parse_mapping(text, flag)


def _override(experiment: Experiment, overrides: Mapping[str, Any]) -> None:
    experiment.overrides = dict(overrides)
    for key, value in overrides.items():
        before = getattr(experiment, key)
        # --stop replaces the file's criteria: merged ones would end the run too early. There is
        # one scheduler and one search.
        merge = isinstance(value, Mapping) and key not in ("stop", "scheduler", "search")
        setattr(experiment, key, deep_merge(before, value) if merge else value)
    try:
        _check(experiment)
    except OptionError as error:
        raise experiment.error(error) from error


def _check(experiment: Experiment) -> None:
    """What can be checked without RLlib: `experiment.checkpoint_config` and what must be there."""
    for section in ("stop", "config", "checkpoint_config"):
        if not isinstance(getattr(experiment, section), Mapping):
            value = show(getattr(experiment, section))
            raise OptionError(section, f"expected {expected([dict])}, got {value}.")
    try:
        check_section(experiment.checkpoint_config, CHECKPOINT_KEYS)
    except OptionError as error:
        raise error.within("checkpoint_config") from error
    for key in ("run", "env"):
        if not getattr(experiment, key) and not experiment.config.get(key):
            raise OptionError(key, f"missing. Give it in the file or with --{key}.")


def _from_yaml(file: str) -> list[Experiment]:
    path = Path(file)
    try:
        content = strict_yaml.load(path.read_text(encoding="utf-8"), file)
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such file.") from error
    except IsADirectoryError as error:
        raise UserError(f"{file}: is a directory, expected a .yaml or .py file.") from error
    except PermissionError as error:
        raise UserError(f"{file}: not readable.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not a text file.") from error
    if content is None:
        raise UserError(f"{file}: empty file.")
    if not isinstance(content, dict):
        raise UserError(
            f"{file}: expected a mapping of experiment names to settings, got {show(content)}."
        )
    experiments = []
    for name, settings in content.items():
        if name in EXPERIMENT_KEYS and not isinstance(settings, dict):
            raise UserError(f'{file}: "{name}" stands at the top; put an experiment name above it.')
        if not isinstance(settings, dict):
            raise UserError(f"{file}: {name}: expected a mapping, got {show(settings)}.")
        if trouble := name_problem(str(name)):
            raise UserError(f"{file}: {trouble}")
        experiment = Experiment(name=str(name), source=file)
        try:
            check_section(settings, EXPERIMENT_KEYS)
        except OptionError as error:
            raise experiment.error(error) from error
        for key, value in settings.items():
            setattr(experiment, key, value)
        experiments.append(experiment)
    return experiments


def _from_python(file: str) -> Experiment:
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{file}: no such file.")
    spec = importlib.util.spec_from_file_location(f"rllib_file_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(path)
        ]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else "?")
        raise UserError(f"{file}: line {line}: {type(error).__name__}: {error}") from error

    from ray import cloudpickle
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    # Workers cannot import this file by name: classes defined in it must travel by value.
    cloudpickle.register_pickle_by_value(module)
    config = getattr(module, "config", None)
    if not isinstance(config, AlgorithmConfig):
        raise UserError(f"{file}: expected a variable `config` holding an RLlib AlgorithmConfig.")
    if config.algo_class is None:
        raise UserError(f"{file}: `config` names no algorithm; use PPOConfig(), SACConfig() …")
    stop = getattr(module, "stop", {})
    return Experiment(
        name=path.stem,
        run=config.algo_class,
        env=config.env,
        stop=stop,
        source=file,
        algorithm_config=config,
    )
