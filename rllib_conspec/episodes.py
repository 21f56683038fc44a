"""What passes between the rooms: whole episodes, and the few numbers that sum one up.

NumPy, lz4 and xxhash only. Rollout workers make episodes, reward models learn from them and pay for
their steps, reports show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import lz4.frame
import numpy as np
import xxhash

SIGN = "sign"  # as `reward_scale`


def scaled(rewards: np.ndarray, scale: float | str) -> np.ndarray:
    """The environment's rewards as the policy learns from them: float32, times `scale`, or their
    sign. Always a new array.
    """
    rewards = np.asarray(rewards, dtype=np.float32)
    return np.sign(rewards) if scale == SIGN else rewards * np.float32(scale)


@dataclass(frozen=True)
class Summary:
    """What a reward model chooses by: the driver reads summaries, never frames."""

    extrinsic_return: float
    length: int
    success: bool | None  # None: success is relative to the batch (top_k)


@dataclass(frozen=True, eq=False)
class Episode:
    """One finished episode of T steps. Its arrays are shared, and never written to."""

    observations: np.ndarray  # [T + 1, *shape], as the environment gave them
    actions: np.ndarray  # [T, …], as the policy chose them
    rewards: np.ndarray  # [T], the environment's own
    terminated: bool = True  # False: cut off by a time limit
    success: bool | None = None  # None: relative to the batch (top_k)
    # (step, name) of what the environment marked as worth finding. Never learned from: it lets a
    # report say which of these steps a model found.
    events: tuple[tuple[int, str], ...] = ()
    # What the policy gave besides actions, by name, each [T, …].
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)  # of the last step; stays on the worker
    seed: int | None = None  # of its reset: with the actions, enough to play it again

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def frames(self) -> np.ndarray:
        """[T, *shape]: the observation that each step led to."""
        return self.observations[1:]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self.observations.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        """Of observations."""
        return self.observations.dtype

    @cached_property
    def digests(self) -> np.ndarray:
        """uint64 [T + 1]: equal observations have equal digests.

        Computed when somebody first asks, and then carried along.
        """
        # 64 bits: among the 100 000 frames of full memories, a collision has a chance of 3e-10.
        observations = np.ascontiguousarray(self.observations)
        # Not for keeping secrets: xxh3 reads a frame as fast as memory gives it.
        found = [xxhash.xxh3_64_intdigest(o.data) for o in observations]
        return np.array(found, dtype="<u8")

    @property
    def summary(self) -> Summary:
        return Summary(float(self.rewards.sum()), len(self), self.success)

    def judged(self, success: bool | None) -> Episode:
        """The same arrays with this verdict."""
        return replace(self, success=success)

    def kept(self, outputs: bool = True) -> Episode:
        """The same in memory of its own, for keeping: its arrays here may be pieces of a worker's
        block of frames or lie in a store that others free. Without `outputs` if they are not used.
        """
        copy = replace(
            self,
            observations=_own(self.observations),
            actions=_own(self.actions),
            rewards=_own(self.rewards),
            outputs={n: _own(values) for n, values in self.outputs.items()} if outputs else {},
            info={},
        )
        if "digests" in self.__dict__:
            copy.__dict__["digests"] = self.digests.copy()
        return copy

    def packed(self) -> PackedEpisode:
        """The same in memory of its own, without outputs, its observations compressed."""
        small = replace(self, observations=self.observations[:0]).kept(outputs=False)
        # Equal frames must be found without unpacking what they are compared with.
        return PackedEpisode(
            small,
            lz4.frame.compress(np.ascontiguousarray(self.observations).data),
            self.digests.copy(),
        )


@dataclass(frozen=True, eq=False)
class PackedEpisode:
    """An episode for a large memory: pictures take a tenth or less of their room (lz4)."""

    rest: Episode  # all but the observations
    observations: bytes
    digests: np.ndarray  # uint64 [T + 1]

    def __len__(self) -> int:
        return len(self.rest)

    @property
    def success(self) -> bool | None:
        return self.rest.success

    @property
    def actions(self) -> np.ndarray:
        return self.rest.actions

    @property
    def rewards(self) -> np.ndarray:
        return self.rest.rewards

    @property
    def frames(self) -> np.ndarray:
        """[T, *shape], unpacked anew whenever it is asked for."""
        return self.unpacked().frames

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self.rest.shape

    @property
    def dtype(self) -> np.dtype:
        """Of observations."""
        return self.rest.dtype

    def unpacked(self) -> Episode:
        empty = self.rest.observations
        whole = np.frombuffer(lz4.frame.decompress(self.observations), dtype=empty.dtype)
        episode = replace(self.rest, observations=whole.reshape(-1, *empty.shape[1:]))
        episode.__dict__["digests"] = self.digests
        return episode


def _own(array: np.ndarray) -> np.ndarray:
    array = np.array(array, order="C")
    array.flags.writeable = False
    return array
