"""A Gymnasium environment's spaces, observations and actions in ML-Agents' words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_conspec.unity.messages import NO_PROPERTY, PNG, TRANSLATIONAL, Observation
from rllib_conspec.unity.pixels import PngFiles

KINDS = ("float", "png")


class ObservationWriter:
    """Writes the observations of one sub-environment into an agent's message."""

    def __init__(self, space: spaces.Space, kind: str = "float", channels_first: bool = False):
        parts = dict(space.items()) if isinstance(space, spaces.Dict) else {"": space}
        self._png = kind == "png"
        self._channels_first = channels_first
        # What does not change from step to step is put into bytes once.
        self._parts = [
            (
                name,
                PngFiles(part.shape) if _is_picture(part) else None,
                self._description(name, part),
            )
            for name, part in parts.items()
        ]

    def _description(self, name: str, space: spaces.Space) -> bytes:
        message = Observation(name=name or "observation")
        shape = space.shape or (1,)
        if _is_picture(space):
            message.compression_type = PNG if self._png else 0
            properties = [TRANSLATIONAL, TRANSLATIONAL, NO_PROPERTY]
            if self._channels_first:
                shape, properties = (shape[2], *shape[:2]), properties[::-1]
            message.dimension_properties.extend(properties)
        message.shape.extend(shape)
        return message.SerializeToString()

    def write(self, messages: Any, observations: Any, index: int) -> None:
        """Add row ``index`` of the batch ``observations``."""
        for name, files, description in self._parts:
            array = (observations[name] if name else observations)[index]
            message = messages.add()
            message.MergeFromString(description)
            if files is None:
                message.float_data.data = np.asarray(array, np.float32).tobytes()
            elif self._png:
                message.compressed_data = files.write(array)
            else:
                floats = np.multiply(array, np.float32(1 / 255), dtype=np.float32)
                if self._channels_first:
                    floats = floats.transpose(2, 0, 1)
                message.float_data.data = floats.tobytes()


def _is_picture(space: spaces.Space) -> bool:
    return space.dtype == np.uint8 and len(space.shape) == 3


class ActionReader:
    """Reads the actions of agents; the space is Discrete, MultiDiscrete or a bounded Box."""

    def __init__(self, space: spaces.Space):
        self.space = space
        self.continuous = int(np.prod(space.shape)) if isinstance(space, spaces.Box) else 0
        self.branches = []
        if isinstance(space, spaces.Discrete):
            self.branches = [int(space.n)]
        elif isinstance(space, spaces.MultiDiscrete):
            self.branches = space.nvec.tolist()

    def describe(self, action_spec: Any) -> None:
        """Fill in an ``ActionSpecProto``."""
        action_spec.num_continuous_actions = self.continuous
        action_spec.num_discrete_actions = len(self.branches)
        action_spec.discrete_branch_sizes.extend(self.branches)

    def read(self, messages: Mapping[int, Any], count: int) -> np.ndarray:
        """Actions of ``count`` sub-environments; those without a message get zeros."""
        if self.continuous:
            low, high = self.space.low, self.space.high
            actions = np.tile((low + high) / 2, (count, *[1] * low.ndim)).astype(np.float32)
            for i, message in messages.items():
                part = np.array(message.continuous_actions, np.float32).reshape(low.shape)
                actions[i] = low + (part + 1) / 2 * (high - low)  # ML-Agents' run from −1 to 1
            return actions
        rows = np.zeros((count, len(self.branches)), np.int64)
        for i, message in messages.items():
            rows[i] = _choices(message)
        if isinstance(self.space, spaces.Discrete):
            return rows[:, 0] + int(self.space.start)
        return rows + self.space.start


def _choices(message: Any) -> Sequence[int]:
    return message.discrete_actions or [int(x) for x in message.vector_actions_deprecated]
