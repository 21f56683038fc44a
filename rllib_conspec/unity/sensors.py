"""Observations of a player's agents as Gymnasium spaces and arrays.

Pictures become uint8 ``[height, width, channels]`` from 0 to 255, whatever layout and compression
the player uses; everything else stays float32. One sensor gives a Box, several a Dict by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, create_empty_array

from rllib_conspec.unity.faults import PlayerTalksNonsense
from rllib_conspec.unity.messages import PNG, TRANSLATIONAL
from rllib_conspec.unity.pixels import read_png


class Sensor:
    """One kind of observation that every agent has."""

    def __init__(self, name: str, shape: Sequence[int], properties: Sequence[int] = ()):
        self.name = name
        self.shape = tuple(shape)
        self.visual = len(self.shape) == 3
        self._channels_first = self.visual and _channels_first(self.shape, properties)
        if self.visual:
            seen = self._to_picture(np.empty(self.shape, np.uint8)).shape
            self.space = spaces.Box(0, 255, seen, np.uint8)
            self._scaled = np.empty(self.shape, np.float32)
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
        if values.size != np.prod(self.shape):
            raise PlayerTalksNonsense(
                f"sent {values.size} numbers for observation {self.name!r} of shape {self.shape}"
            )
        values = values.reshape(self.shape)
        if self.visual:
            np.multiply(values, 255, out=self._scaled)
            np.rint(self._scaled, out=self._scaled)
            np.clip(self._scaled, 0, 255, out=self._scaled)
            np.copyto(out, self._to_picture(self._scaled), casting="unsafe")
        elif np.isfinite(values).all():
            out[...] = values
        else:
            raise PlayerTalksNonsense(f"sent a number that is not finite in {self.name!r}")

    def _decompress(self, observation: Any) -> np.ndarray:
        try:
            picture = read_png(observation.compressed_data)
        except Exception as error:
            raise PlayerTalksNonsense(f"sent a broken picture in {self.name!r}: {error}") from error
        wanted, sent = self.space.shape[2], picture.shape[2]
        if mapping := list(observation.compressed_channel_mapping):
            # Channel i of the picture belongs to channel mapping[i] of the observation, −1 to none.
            sources = [[i for i in range(sent) if mapping[i] == c] for c in range(wanted)]
        else:
            sources = [[*range(sent)]] if wanted == 1 else [[c] for c in range(wanted)]
        if sources != [[c] for c in range(sent)]:
            means = [picture[:, :, channels].mean(axis=2) for channels in sources]
            picture = np.rint(np.stack(means, axis=2)).astype(np.uint8)
        if picture.shape != self.space.shape:
            raise PlayerTalksNonsense(
                f"sent a picture of shape {picture.shape} for {self.name!r}, "
                f"announced as {self.space.shape}"
            )
        return picture


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
        if len(self._sensors) == 1:
            self.space: spaces.Space = self._sensors[0].space
        else:
            self.space = spaces.Dict({s.name: s.space for s in self._sensors})

    def empty(self, count: int) -> Any:
        """Room for the observations of ``count`` agents."""
        return create_empty_array(self.space, count, fn=np.zeros)

    def batch(self, count: int) -> spaces.Space:
        """The space of what `empty(count)` returns."""
        return batch_space(self.space, count)

    def read(self, observations: Sequence[Any], out: Any, index: int) -> None:
        """Write an agent's observations to row ``index`` of ``out``."""
        if len(observations) != len(self._sensors):
            raise PlayerTalksNonsense(
                f"sent {len(observations)} observations instead of {len(self._sensors)}"
            )
        for sensor, observation in zip(self._sensors, observations, strict=True):
            rows = out[sensor.name] if isinstance(out, Mapping) else out
            sensor.read(observation, rows[index])

    def copy_row(self, source: Any, out: Any, index: int) -> None:
        """Row ``index`` of one batch to another."""
        for sensor in self._sensors:
            if isinstance(out, Mapping):
                out[sensor.name][index] = source[sensor.name][index]
            else:
                out[index] = source[index]
