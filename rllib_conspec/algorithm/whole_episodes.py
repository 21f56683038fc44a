"""Training data that is dealt out to learners by whole episodes; RLlib would cut one in two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.report import Report, Share, all_fetched


class WholeEpisodes(TrainingData):
    """The workers' shares of a batch, or references to them: learners fetch their own."""

    @classmethod
    def of(cls, shares: Sequence[Sequence[Any]], reports: Sequence[Report]) -> WholeEpisodes:
        """`shares` [worker][learner], and the workers' reports."""
        data = cls(episodes=[])
        count = len(shares[0])
        # An episode counts one more step than it has.
        lengths = [[s.length + 1 for s in report.summaries] for report in reports]
        # A worker deals its episodes out in turn, beginning where the one before it ended, or the
        # first learner would get all where workers have a single episode.
        begins = list(accumulate(map(len, lengths), initial=0))[:-1]
        data.shares, data.steps = [], []  # both [learner]
        for i in range(count):
            turns = [(i - begin) % count for begin in begins]
            data.shares.append([own[j] for own, j in zip(shares, turns, strict=True)])
            steps = (sum(own[j::count]) for own, j in zip(lengths, turns, strict=True))
            data.steps.append(sum(steps))
        data.count = sum(len(own) for own in lengths)
        return data

    def minibatch_size(self, episodes: int) -> int:
        """That many episodes in RLlib's measure: their share of the batch's steps."""
        return math.ceil(min(episodes, self.count) * sum(self.steps) / self.count)

    @override(TrainingData)
    def shard(self, num_shards: int, **kwargs: Any) -> list[tuple[TrainingData, dict]]:
        # Equal for all, or the learners would wait for each other's gradients for ever.
        count = math.ceil(kwargs.get("num_epochs", 1) * max(self.steps) / kwargs["minibatch_size"])
        parts = []
        for shares in self.shares:
            part = WholeEpisodes(episodes=[])
            part.shares = [shares]
            parts.append((part, {"num_total_minibatches": count}))
        return parts

    @override(TrainingData)
    def solve_refs(self) -> None:
        found = all_fetched([share for shares in self.shares for share in shares])
        self.episodes = [e for share in found if share is not None for e in Share(*share).rl]
