"""Checks of single settings, each answered by one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.tune.search.sample import Domain

from rllib_conspec.episodes import SIGN
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.networks import MODEL_CONFIG_KEYS, cores
from rllib_conspec.networks.encoders import ENCODERS


def is_sampler(value: Any) -> bool:
    """Whether Tune is to put a value in its place: `tune.uniform(…)`, `tune.grid_search([…])`."""
    return isinstance(value, Domain) or (isinstance(value, dict) and set(value) == {"grid_search"})


def without_samplers(options: Any) -> Any:
    """The options that can be checked before Tune has put values into the others; what is no
    mapping is left as it is, to be refused by its name.
    """
    if not isinstance(options, Mapping):
        return options
    return {key: value for key, value in options.items() if not is_sampler(value)}


def check_model_config(model_config: Any) -> None:
    """Names, types and values of what our networks are made by."""
    if not isinstance(model_config, dict):
        kind = type(model_config).__name__
        raise OptionError(
            "model_config", f"must be a mapping of {', '.join(MODEL_CONFIG_KEYS)}, not {kind}."
        )
    for key, value in model_config.items():
        if key not in MODEL_CONFIG_KEYS:
            raise OptionError(
                f"model_config.{key}", "unknown option." + did_you_mean(key, MODEL_CONFIG_KEYS)
            )
        if not isinstance(value, MODEL_CONFIG_KEYS[key]) or isinstance(value, bool):
            kind = MODEL_CONFIG_KEYS[key].__name__
            raise OptionError(f"model_config.{key}", f"must be of type {kind}, not {value!r}.")
        if key == "encoder" and value not in (known := ("auto", *ENCODERS)):
            raise OptionError(
                "model_config.encoder",
                f"must be one of {', '.join(known)}, not {value!r}." + did_you_mean(value, known),
            )
        if key == "core":
            try:
                cores.find_core(value)
            except OptionError as error:
                raise OptionError("model_config.core", error.message) from error
        if key.endswith("_dim") or key == "max_seq_len":
            check_whole_number(f"model_config.{key}", value, least=int(key != "core_dim"))
    if model_config.get("core_options"):
        core = model_config.get("core", "gru")
        try:
            cores.options_of(core, model_config["core_options"])
        except OptionError as error:
            _, _, option = error.option.rpartition(".")
            raise OptionError(f"model_config.core_options.{option}", error.message) from error


def check_reward_scale(value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if not number and value != SIGN:
        raise OptionError("reward_scale", f"must be a number above 0 or {SIGN}, not {value!r}.")


def check_whole_number(option: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(option, f"must be a whole number of at least {least}, not {value!r}.")
