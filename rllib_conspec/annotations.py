"""Whether a plain value fits a type annotation, and how to say what would."""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

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
