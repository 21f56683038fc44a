"""Observations of a player's agents as Gymnasium spaces and arrays.

Pictures become uint8 ``[height, width, channels]`` from 0 to 255, whatever layout and compression
the player uses; everything else stays float32. One sensor gives a Box, several a Dict by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_conspec.unity.client.faults import PlayerTalksNonsense
from rllib_conspec.unity.messages import PNG, TRANSLATIONAL
from rllib_conspec.unity.pixels import PngFiles


class Sensor:
    """One kind of observation that every agent has."""

    def __init__(self, name: str, shape: Sequence[int], properties: Sequence[int] = ()):
        self.name = name
        self.shape = tuple(shape)
        self.visual = len(self.shape) == 3
        self._size = math.prod(self.shape)
        self._channels_first = self.visual and _channels_first(self.shape, properties)
        if self.visual:
            self._seen = self._to_picture(np.empty(self.shape, np.uint8)).shape
            self.space = spaces.Box(0, 255, self._seen, np.uint8)
            self._scaled = np.empty(self.shape, np.float32)
            self._files = PngFiles(self._seen)
        else:
            self.space = spaces.Box(-np.inf, np.inf, self.shape, np.float32)

    def _to_picture(self, array: np.ndarray) -> np.ndarray:
        return array.transpose(1, 2, 0) if self._channels_first else array

    def read(self, observation: Any, out: np.ndarray) -> None:
        """Write a received observation to ``out``, an array of this sensor's space."""
        if self.visual and observation.compression_type == PNG:
            out[...] = self._decompress(observation)
            return
        values = np.frombuffer(observation.float_data.data, np.float32)
        if values.size != self._size:
            raise PlayerTalksNonsense(
                f"sent {values.size} numbers for observation {self.name!r} of shape {self.shape}"
            )
        values = values.reshape(self.shape)
        if self.visual:
            scaled = np.multiply(values, 255, out=self._scaled)
            np.rint(scaled, out=scaled)
            np.minimum(np.maximum(scaled, 0, out=scaled), 255, out=scaled)
            np.copyto(out, self._to_picture(scaled), casting="unsafe")
        elif np.isfinite(values).all():
            out[...] = values
        else:
            raise PlayerTalksNonsense(f"sent a number that is not finite in {self.name!r}")

    def _decompress(self, observation: Any) -> np.ndarray:
        try:
            picture = self._files.read(observation.compressed_data)
        except Exception as error:
            raise PlayerTalksNonsense(f"sent a broken picture in {self.name!r}: {error}") from error
        mapping = observation.compressed_channel_mapping
        if mapping or picture.shape[2] != self._seen[2]:
            picture = _merge(picture, list(mapping), self._seen[2])
        if picture.shape != self._seen:
            raise PlayerTalksNonsense(
                f"sent a picture of shape {picture.shape} for {self.name!r}, "
                f"announced as {self._seen}"
            )
        return picture


def _merge(picture: np.ndarray, mapping: Sequence[int], wanted: int) -> np.ndarray:
    """``wanted`` channels out of those that were sent: ``mapping`` says to which each belongs.

    Without one, a single channel is the mean of all, and what is too many is filling.
    """
    sent = picture.shape[2]
    if not mapping:
        mapping = [0] * sent if wanted == 1 else range(sent)
    if len(mapping) != sent or not set(range(wanted)) <= set(mapping):
        raise PlayerTalksNonsense(f"sent {sent} channels and put them as {list(mapping)}")
    sources = [[i for i in range(sent) if mapping[i] == channel] for channel in range(wanted)]
    means = [picture[:, :, channels].mean(axis=2) for channels in sources]
    return np.rint(np.stack(means, axis=2)).astype(np.uint8)


def _channels_first(shape: Sequence[int], properties: Sequence[int]) -> bool:
    """Builds with package 3 announce [channels, height, width], older ones channels last."""
    moving = [bool(p & TRANSLATIONAL) for p in properties]
    if moving in ([False, True, True], [True, True, False]):
        return not moving[0]
    return shape[0] < shape[2]


class Sensors:
    """All sensors of a behaviour."""

    def __init__(self, specs: Sequence[Any]):
        """``specs`` are the ``observation_specs`` of mlagents-envs."""
        names: list[str] = []
        for i, spec in enumerate(specs):
            name = spec.name or f"observation_{i}"
            names.append(name if name not in names else f"{name}_{i}")
        self._sensors = [
            Sensor(name, spec.shape, [int(p) for p in spec.dimension_property])
            for name, spec in zip(names, specs, strict=True)
        ]
        self._several = len(self._sensors) > 1
        if not self._several:
            self.space: spaces.Space = self._sensors[0].space
        else:
            self.space = spaces.Dict({s.name: s.space for s in self._sensors})

    def empty(self, count: int) -> Any:
        """Room for the observations of ``count`` agents."""
        if not self._several:
            return np.empty((count, *self.space.shape), self.space.dtype)
        return {name: np.empty((count, *s.shape), s.dtype) for name, s in self.space.items()}

    def read(self, observations: Sequence[Any], out: Any, index: int) -> None:
        """Write an agent's observations to row ``index`` of ``out``."""
        if len(observations) != len(self._sensors):
            raise PlayerTalksNonsense(
                f"sent {len(observations)} observations instead of {len(self._sensors)}"
            )
        for sensor, observation in zip(self._sensors, observations, strict=True):
            rows = out[sensor.name] if self._several else out
            sensor.read(observation, rows[index])
