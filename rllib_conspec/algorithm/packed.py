"""Answers in two parts: bytes, and the references that stood in them.

Whoever passes an answer on need not read it, and whoever reads it may see something else in place
of the references.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import ray
from ray import cloudpickle


def packed(thing: Any) -> tuple[bytes, list[ray.ObjectRef]]:
    """`thing` without references, and these."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(thing)
    return buffer.getvalue(), list(pickler.places)


def unpacked(data: bytes, stand_ins: Sequence[Any]) -> Any:
    """The thing again, with these where its references were."""
    return _Unpickler(io.BytesIO(data), stand_ins).load()


class _Pickler(cloudpickle.CloudPickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer)
        self.places: dict[ray.ObjectRef, int] = {}

    def persistent_id(self, thing: Any) -> int | None:
        if isinstance(thing, ray.ObjectRef):
            return self.places.setdefault(thing, len(self.places))
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, stand_ins: Sequence[Any]) -> None:
        super().__init__(buffer)
        self._stand_ins = stand_ins

    def persistent_load(self, place: int) -> Any:
        return self._stand_ins[place]
