"""A Gymnasium environment's spaces, observations and actions in ML-Agents' words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_conspec.unity.messages import NO_PROPERTY, PNG, TRANSLATIONAL
from rllib_conspec.unity.pixels import write_png

KINDS = ("float", "png")


class ObservationWriter:
    """Writes the observations of one sub-environment into an agent's message."""

    def __init__(self, space: spaces.Space, kind: str = "float", channels_first: bool = False):
        self._parts = dict(space.items()) if isinstance(space, spaces.Dict) else {"": space}
        self._png = kind == "png"
        self._channels_first = channels_first

    def write(self, messages: Any, observations: Any, index: int) -> None:
        """Row ``index`` of the batch ``observations``; what stood in ``messages`` is replaced."""
        if len(messages) != len(self._parts):
            self._describe(messages)
        for message, (name, space) in zip(messages, self._parts.items(), strict=True):
            array = (observations[name] if name else observations)[index]
            if not _is_picture(space):
                message.float_data.data = np.asarray(array, np.float32).tobytes()
            elif self._png:
                message.compressed_data = write_png(array)
            else:
                floats = np.multiply(array, np.float32(1 / 255), dtype=np.float32)
                if self._channels_first:
                    floats = floats.transpose(2, 0, 1)
                message.float_data.data = floats.tobytes()

    def _describe(self, messages: Any) -> None:
        """What does not change from step to step."""
        del messages[:]
        for name, space in self._parts.items():
            message = messages.add(name=name or "observation")
            shape = space.shape or (1,)
            if _is_picture(space):
                message.compression_type = PNG if self._png else 0
                properties = [TRANSLATIONAL, TRANSLATIONAL, NO_PROPERTY]
                if self._channels_first:
                    shape, properties = (shape[2], *shape[:2]), properties[::-1]
                message.dimension_properties.extend(properties)
            message.shape.extend(shape)


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
