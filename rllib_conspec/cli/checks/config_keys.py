"""Check names and types of the keys of `config` against the algorithm's AlgorithmConfig."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from rllib_conspec.annotations import expected, fits, show
from rllib_conspec.cli.checks.algorithms import our_algorithms
from rllib_conspec.cli.checks.schema import check_keys
from rllib_conspec.cli.checks.space import possible
from rllib_conspec.cli.checks.values import check_finite, check_samplers, infinite_options
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.reward_models import REGISTRY

# Fields that a configuration fills in by itself.
FOUND = ("facts",)
# Least and greatest values that make sense; RLlib takes any number here and fails much later.
LIMITS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        (
            "num_env_runners",
            "num_learners",
            "num_cpus_per_env_runner",
            "num_gpus_per_env_runner",
            "num_cpus_per_learner",
            "num_gpus_per_learner",
            "lr",
            "grad_clip",
            "seed",
            "evaluation_num_env_runners",
        ),
        (0, math.inf),
    ),
    **dict.fromkeys(
        (
            "num_envs_per_env_runner",
            "num_epochs",
            "minibatch_size",
            "train_batch_size_per_learner",
            "rollout_fragment_length",
            "evaluation_interval",
            "evaluation_duration",
        ),
        (1, math.inf),
    ),
    **dict.fromkeys(("gamma", "lambda", "lambda_", "tau"), (0, 1)),
}


def check_config(config: Mapping[str, Any], default: Any) -> None:
    """Names and types of the keys of `config` against the algorithm's AlgorithmConfig."""
    hints = _setter_hints(type(default))
    values = default.to_dict()
    sections = ("env_config", "model_config", *_model_sections(default))
    known = [key for key in values if not key.startswith("_") and key not in FOUND]
    known += [key for key in (*hints, *sections) if _has_setter(default, key) or key in sections]
    try:
        check_samplers(config)
        _check_model_sections(config, default)
        check_keys(config, known)
        check_finite(config, infinite_options(values))
        for key, given in config.items():
            before, hint = values.get(key), hints.get(key)
            if before == -1 and hint is None:
                names = [name for name in known if name != key]
                raise OptionError(key, f"RLlib no longer uses it.{did_you_mean(key, names)}")
            kinds = [kind for kind in (hint, _kind(before)) if kind is not None]
            if key in sections:
                kinds = [dict]
            for value in possible(key, given):
                if kinds and not any(fits(kind, value) for kind in kinds):
                    raise OptionError(key, f"expected {expected(kinds)}, got {show(value)}.")
                least, most = LIMITS.get(key, (-math.inf, math.inf))
                if fits(float, value) and not least <= value <= most:
                    bound = f"at least {least}" if value < least else f"at most {most}"
                    raise OptionError(key, f"must be {bound}, got {show(value)}.")
    except OptionError as error:
        raise error.within("config") from error


def _model_sections(default: Any) -> tuple[str, ...]:
    """Keys of `config` that hold options of reward models."""
    takes_models = hasattr(default, "reward_models")
    return ("reward_models", *default.short_forms) if takes_models else ()


def _check_model_sections(config: Mapping[str, Any], default: Any) -> None:
    """Say where reward models belong when they are given where there are none."""
    sections = _model_sections(default)
    for key in config:
        if key in sections or key not in ("reward_models", *REGISTRY.entries):
            continue
        if sections:
            raise OptionError(key, f"unknown option. Write it as reward_models: {{{key}: …}}.")
        raise OptionError(key, f"this algorithm takes no reward models; {_instead(key, default)}.")


def _instead(key: str, default: Any) -> str:
    """What to do for an algorithm that takes no reward models, to which `key` was given."""
    from rllib_conspec.algorithm.extendable import why_not

    base = default.algo_class
    if (why := why_not(base)) is not None:
        return why
    takers = our_algorithms()
    own = {n: a for n, a in takers.items() if key in a.get_default_config().short_forms} or takers
    like = [name for name, algorithm in own.items() if issubclass(algorithm, base)]
    return f"use run: {' or '.join(like or own)}"


def _setter_hints(config_class: type) -> dict[str, Any]:
    """Annotations of the keyword arguments of an AlgorithmConfig's fluent methods, by name.

    `.training(lr: Optional[float | list] = ...)` knows that lr may be a schedule; the default value
    alone does not.
    """
    hints: dict[str, Any] = {}
    for klass in reversed(config_class.__mro__):
        for name, method in vars(klass).items():
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            for parameter in inspect.signature(method).parameters.values():
                annotated = parameter.annotation is not parameter.empty
                if parameter.kind is parameter.KEYWORD_ONLY and annotated:
                    hints[parameter.name.rstrip("_")] = parameter.annotation
    return hints


def _has_setter(config: Any, key: str) -> bool:
    attribute = getattr(type(config), key, None)
    return hasattr(config, key) and (not isinstance(attribute, property) or bool(attribute.fset))


def _kind(value: Any) -> type | None:
    """The type that a default stands for, or None when it says nothing."""
    return type(value) if isinstance(value, (bool, int, float, str, dict, list)) else None
