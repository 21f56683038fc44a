"""Options as a dataclass: each one once, with its type, default, meaning and possible values.

A mistake is answered by an `OptionError` that names the option and what it may be.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, get_type_hints

from rllib_conspec.errors import OptionError, did_you_mean

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def option(default: Any, help: str, *, choices: tuple | None = None, **limits: float) -> Any:
    """A dataclass field with its documentation and limits (`above`, `min`, `max`)."""
    return field(default=default, metadata={"help": help, "choices": choices, **limits})


@dataclass(frozen=True)
class Options:
    """Base of a model's options: every value is checked when one is built."""

    def __post_init__(self) -> None:
        for f in fields(self):
            _check_value(type(self), f.name, getattr(self, f.name))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from plain values; an unknown name is answered with the nearest known one."""
        names = [f.name for f in fields(cls)]
        for name in values:
            if name not in names:
                raise OptionError(str(name), "unknown option." + did_you_mean(str(name), names))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _accepted(hint: Any) -> tuple[tuple[type, ...], str]:
    """The Python types that a field's annotation takes, and how to say so."""
    args = getattr(hint, "__args__", (hint,))
    types = tuple(t for t in args if t is not type(None))
    said = " or ".join(_WORDS.get(t, t.__name__) for t in types)
    said += " or null" if type(None) in args else ""
    return tuple(args) + ((int,) if float in args else ()), said


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _check_value(cls: type, name: str, value: Any) -> None:
    limits = {"choices": None} | dict(cls.__dataclass_fields__[name].metadata)
    types, said = _accepted(_hints(cls)[name])
    # bool is a subclass of int: "true prototypes" must not pass for one prototype.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise OptionError(name, f"must be {said}, not {value!r}.")
    if value is None:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(name, f"must be a finite number, not {value}.")
    if limits["choices"] and value not in limits["choices"]:
        choices = ", ".join(limits["choices"])
        hint = did_you_mean(value, limits["choices"])
        raise OptionError(name, f"must be one of {choices}, not {value!r}.{hint}")
    for limit, holds, says in (
        ("above", lambda v, x: v > x, "more than"),
        ("min", lambda v, x: v >= x, "at least"),
        ("max", lambda v, x: v <= x, "at most"),
    ):
        if limit in limits and not holds(value, limits[limit]):
            raise OptionError(name, f"must be {says} {limits[limit]}, not {value}.")
