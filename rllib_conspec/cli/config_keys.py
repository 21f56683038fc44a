"""Check names and types of the keys of `config` against the algorithm's AlgorithmConfig."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from rllib_conspec.cli.schema import alternatives, check_keys, expected, fits, show
from rllib_conspec.errors import OptionError, did_you_mean

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
    known = [key for key in values if not key.startswith("_")]
    known += [key for key in hints if _has_setter(default, key) and key not in known]
    known += ["model_config"]
    if "conspec_options" in known:  # where ConSpec keeps what the section `conspec` gave
        known[known.index("conspec_options")] = "conspec"
    try:
        if "conspec" in config and "conspec" not in known:
            raise OptionError("conspec", "this algorithm has no ConSpec; use run: ConSpec.")
        check_keys(config, known)
        for key, given in config.items():
            before, hint = values.get(key), hints.get(key)
            if before == -1 and hint is None:
                names = [name for name in known if name != key]
                raise OptionError(key, f"RLlib no longer uses it.{did_you_mean(key, names)}")
            kinds = [kind for kind in (hint, _kind(before)) if kind is not None]
            if key in ("env_config", "model_config", "conspec"):
                kinds = [dict]
            for value in alternatives(key, given):
                if kinds and not any(fits(kind, value) for kind in kinds):
                    raise OptionError(key, f"expected {expected(kinds)}, got {show(value)}.")
                least, most = LIMITS.get(key, (-math.inf, math.inf))
                if fits(float, value) and not least <= value <= most:
                    bound = f"at least {least}" if value < least else f"at most {most}"
                    raise OptionError(key, f"must be {bound}, got {show(value)}.")
    except OptionError as error:
        raise error.within("config") from error


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
