"""Small checks of keys and types, shared by every section of an experiment file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rllib_conspec.annotations import NUMBER, expected, fits, show
from rllib_conspec.errors import OptionError, did_you_mean


@dataclasses.dataclass(frozen=True)
class Key:
    """What one key of a section accepts."""

    types: tuple[type, ...]
    min: float | None = None
    choices: tuple[str, ...] | None = None


def check_keys(section: Mapping[str, Any], known: Iterable[str], what: str = "option") -> None:
    """Raise for the first key of `section` that is not in `known`."""
    known = list(known)
    for key in section:
        if key not in known:
            raise OptionError(str(key), f"unknown {what}.{did_you_mean(str(key), known)}")


def check_section(section: Mapping[str, Any], schema: Mapping[str, Key]) -> None:
    """Check names, types, lower bounds and choices of all keys of `section`."""
    check_keys(section, schema)
    for name, value in section.items():
        key = schema[name]
        finite = not isinstance(value, float) or math.isfinite(value)
        if not finite or not any(fits(kind, value) for kind in key.types):
            raise OptionError(name, f"expected {expected(key.types)}, got {show(value)}.")
        if key.choices and value not in key.choices:
            hint = did_you_mean(str(value), key.choices)
            raise OptionError(
                name, f"must be one of {', '.join(key.choices)}, got {show(value)}.{hint}"
            )
        if key.min is not None and isinstance(value, NUMBER) and value < key.min:
            raise OptionError(name, f"must be at least {key.min:g}, got {show(value)}.")


def one_line(error: Exception) -> str:
    """One line from an exception of RLlib, whose messages can run over many."""
    text, _, _ = " ".join(str(error).split()).partition(" To suppress all validation errors")
    text = text or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
