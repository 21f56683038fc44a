"""Actions of Gymnasium as messages to a player's agents.

One discrete branch is a Discrete space, several are a MultiDiscrete, continuous actions a Box from
−1 to 1, and both together a Dict of ``continuous`` and ``discrete``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_conspec.unity import compat

compat.install()

from mlagents_envs.communicator_objects.agent_action_pb2 import AgentActionProto  # noqa: E402


class Actions:
    """The actions of a behaviour; ``spec`` is the ``action_spec`` of mlagents-envs."""

    def __init__(self, spec: Any):
        self._continuous = spec.continuous_size
        self._branches = tuple(spec.discrete_branches)
        parts: dict[str, spaces.Space] = {}
        if self._continuous:
            parts["continuous"] = spaces.Box(-1.0, 1.0, (self._continuous,), np.float32)
        if len(self._branches) == 1:
            parts["discrete"] = spaces.Discrete(self._branches[0])
        elif self._branches:
            parts["discrete"] = spaces.MultiDiscrete(self._branches)
        self._both = len(parts) == 2
        self.space = spaces.Dict(parts) if self._both else next(iter(parts.values()))
        self.nothing = self._message(np.zeros(self._continuous), np.zeros(len(self._branches), int))

    def check(self, actions: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Actions of ``count`` agents as floats ``[count, c]`` and integers ``[count, d]``."""
        given = actions if self._both else {self._only(): actions}
        continuous = np.zeros((count, 0), np.float32)
        discrete = np.zeros((count, 0), np.int64)
        if self._continuous:
            continuous = np.asarray(given["continuous"], np.float32).reshape(count, -1)
            if continuous.shape[1] != self._continuous or not np.isfinite(continuous).all():
                raise ValueError(f"actions must be {count}×{self._continuous} finite numbers")
            continuous = np.clip(continuous, -1, 1)
        if self._branches:
            discrete = np.asarray(given["discrete"]).reshape(count, -1)
            fits = discrete.shape[1] == len(self._branches)
            if not fits or ((discrete < 0) | (discrete >= self._branches)).any():
                limits = " × ".join(f"0 to {size - 1}" for size in self._branches)
                raise ValueError(f"actions must be {limits}, not {discrete.tolist()}")
        return continuous, discrete

    def _only(self) -> str:
        return "continuous" if self._continuous else "discrete"

    def messages(self, actions: Any, count: int) -> list[AgentActionProto]:
        """One message for each of ``count`` agents."""
        return [self._message(c, d) for c, d in zip(*self.check(actions, count), strict=True)]

    @staticmethod
    def _message(continuous: np.ndarray, discrete: np.ndarray) -> AgentActionProto:
        numbers, choices = continuous.tolist(), discrete.tolist()
        return AgentActionProto(
            vector_actions_deprecated=numbers + choices,  # read by packages before 1.3
            continuous_actions=numbers,
            discrete_actions=choices,
        )
