"""Actions of Gymnasium as messages to a player's agents.

One discrete branch is a Discrete space, several are a MultiDiscrete, continuous actions a Box from
−1 to 1, and both together a Dict of ``continuous`` and ``discrete``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from rllib_conspec.unity.messages import AgentAction


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
        self.nothing = _message((0.0,) * self._continuous, (0,) * len(self._branches))

    def messages(self, actions: Any, count: int) -> list[Any]:
        """One message for each of ``count`` agents."""
        continuous = discrete = [()] * count
        if self._continuous:
            given = np.asarray(actions["continuous"] if self._both else actions, np.float32)
            if given.shape != (count, self._continuous) or not np.isfinite(given).all():
                raise ValueError(f"actions must be {count}×{self._continuous} finite numbers")
            continuous = np.clip(given, -1, 1).tolist()
        if self._branches:
            given = np.asarray(actions["discrete"] if self._both else actions).reshape(count, -1)
            fits = given.shape[1] == len(self._branches)
            if not fits or ((given < 0) | (given >= self._branches)).any():
                limits = " × ".join(f"0 to {size - 1}" for size in self._branches)
                raise ValueError(f"actions must be {limits}, not {given.tolist()}")
            discrete = [tuple(row) for row in given.tolist()]
        make = _message if self._continuous else _remembered
        return [make(tuple(c), d) for c, d in zip(continuous, discrete, strict=True)]


def _message(continuous: Sequence[float], discrete: Sequence[int]) -> Any:
    return AgentAction(
        vector_actions_deprecated=[*continuous, *discrete],  # read by packages before 1.3
        continuous_actions=continuous,
        discrete_actions=discrete,
    )


# Discrete actions are few; their messages are made once.
_remembered = lru_cache(maxsize=1024)(_message)
