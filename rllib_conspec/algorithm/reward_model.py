"""The seam: all that the RLlib glue knows of a reward model such as ConSpec.

A model has a learner's side, which learns from chosen episodes, and a worker's side, which pays
intrinsic rewards with the snapshot that the learner's side broadcast last. Another model is another
class with these methods; nothing in `rllib_conspec.algorithm` changes for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.success import EpisodeSummary, FinishedEpisode


class RewardLearner(Protocol):
    """Lives in every learner, with equal contents in all of them."""

    num_parameters: int

    def add(self, episodes: Sequence[StoredEpisode]) -> None: ...

    def step(self) -> dict[str, Any]: ...

    def snapshot(self) -> Any: ...

    def get_state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...


class RewardScorer(Protocol):
    """Lives in every rollout worker."""

    snapshot: Any
    version: int

    def load(self, snapshot: Any) -> None: ...

    def reward(self, episodes: Sequence[StoredEpisode]) -> list[np.ndarray]: ...


class RewardModel(Protocol):
    """Makes both sides, and chooses what to learn from by summaries alone."""

    name: str

    def success_function(self) -> Callable[[FinishedEpisode], bool | None]: ...

    def judge(self, summaries: Sequence[EpisodeSummary]) -> np.ndarray: ...

    def choose(
        self, summaries: Sequence[EpisodeSummary], rng: np.random.Generator
    ) -> list[tuple[int, bool]]: ...

    def learner(self, shape: Sequence[int], device: Any, seed: int | None) -> RewardLearner: ...

    def scorer(self, shape: Sequence[int]) -> RewardScorer: ...
