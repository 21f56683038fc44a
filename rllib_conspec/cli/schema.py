"""Small checks of keys and types, shared by every section of an experiment file."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from rllib_conspec.errors import OptionError, did_you_mean

NUMBER = (int, float)
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "a mapping",
    list: "a list",
    type(None): "null",
}


@dataclasses.dataclass(frozen=True)
class Key:
    """What one key of a section accepts."""

    types: tuple[type, ...]
    min: float | None = None
    choices: tuple[str, ...] | None = None


def is_grid(value: Any) -> bool:
    """Whether `value` is Tune's `{grid_search: [...]}`."""
    return isinstance(value, Mapping) and set(value) == {"grid_search"}


def alternatives(option: str, value: Any) -> list[Any]:
    """The values an option will take: those of its `grid_search`, or just itself."""
    if not is_grid(value):
        return [value]
    values = value["grid_search"]
    if not isinstance(values, list) or not values:
        raise OptionError(option, f"grid_search needs a list of values, got {show(values)}.")
    return values


def check_keys(section: Mapping[str, Any], known: Iterable[str], what: str = "option") -> None:
    """Raise for the first key of `section` that is not in `known`."""
    known = list(known)
    for key in section:
        if key not in known:
            raise OptionError(str(key), f"unknown {what}.{did_you_mean(str(key), known)}")


def check_section(section: Mapping[str, Any], schema: Mapping[str, Key]) -> None:
    """Check names, types, lower bounds and choices of all keys of `section`."""
    check_keys(section, schema)
    for name, given in section.items():
        key = schema[name]
        for value in alternatives(name, given):
            if not any(fits(kind, value) for kind in key.types):
                raise OptionError(name, f"expected {expected(key.types)}, got {show(value)}.")
            if key.choices and value not in key.choices:
                hint = did_you_mean(str(value), key.choices)
                raise OptionError(
                    name, f"must be one of {', '.join(key.choices)}, got {show(value)}.{hint}"
                )
            if key.min is not None and isinstance(value, NUMBER) and value < key.min:
                raise OptionError(name, f"must be at least {key.min:g}, got {show(value)}.")


def fits(kind: Any, value: Any) -> bool:
    """Whether `value` (from YAML) fits a type or annotation; unknown annotations fit anything."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(part, value) for part in typing.get_args(kind))
    if origin is typing.Literal:
        return value in typing.get_args(kind)
    kind = origin or kind
    if kind is None or kind is type(None):
        return value is None
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, NUMBER) and not isinstance(value, bool)
    if kind is str:
        return isinstance(value, str)
    if kind in (dict, collections.abc.Mapping):
        return isinstance(value, Mapping)
    if kind in (list, tuple, collections.abc.Sequence):
        return isinstance(value, (list, tuple))
    return True


def expected(kinds: Iterable[Any]) -> str:
    """'a number or null' for the types that an option accepts."""
    flat: list[Any] = []
    for kind in kinds:
        union = typing.get_origin(kind) in (typing.Union, types.UnionType)
        for part in typing.get_args(kind) if union else [kind]:
            name = _NAMES.get(typing.get_origin(part) or part)
            if name and name not in flat:
                flat.append(name)
    return " or ".join(flat) or "another type"


def show(value: Any) -> str:
    """A value as the user would write it, short enough for one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
