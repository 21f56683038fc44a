"""What counts as success, and which episodes of a batch enter the memories.

A rollout worker sums an episode up in a few numbers; the choice is made from these summaries alone,
so that frames travel only from the worker that made them to the learner that keeps them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_conspec.retrospection.options import ConSpecOptions


@dataclass(frozen=True)
class FinishedEpisode:
    """What a success function may look at."""

    observations: np.ndarray  # [T, *shape], the observation each step led to
    actions: np.ndarray  # [T, …]
    rewards: np.ndarray  # [T], the environment's own
    info: Mapping[str, Any]  # of the last step


@dataclass(frozen=True)
class EpisodeSummary:
    """What the choice of episodes is made from."""

    extrinsic_return: float
    length: int
    success: bool | None  # None: success is relative to the batch (top_k)


def success_function(options: ConSpecOptions) -> Callable[[FinishedEpisode], bool | None]:
    """The function that tells a finished episode's success, or None for one that cannot alone."""
    return {"sparse": sparse_success, "goal": _goal, "top_k": lambda episode: None}.get(
        options.success
    ) or _imported(options.success)


def sparse_success(episode: FinishedEpisode) -> bool:
    """The episode got the reward."""
    return float(episode.rewards.sum()) > 0


def _goal(episode: FinishedEpisode) -> bool:
    if "is_success" not in episode.info:
        raise KeyError(
            'success "goal" needs an environment that sets info["is_success"] on the last step of '
            "an episode; use success sparse, top_k or your own function."
        )
    return bool(episode.info["is_success"])


def _imported(path: str) -> Callable[[FinishedEpisode], bool]:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def judge(summaries: Sequence[EpisodeSummary], options: ConSpecOptions) -> np.ndarray:
    """Success of every episode of a batch, bool [len(summaries)]."""
    if options.success != "top_k":
        return np.array([bool(s.success) for s in summaries], dtype=bool)
    returns = np.array([s.extrinsic_return for s in summaries])
    best = np.argsort(-returns, kind="stable")[: options.success_top_k]
    return np.isin(np.arange(len(summaries)), best)


def choose(
    summaries: Sequence[EpisodeSummary], options: ConSpecOptions, rng: np.random.Generator
) -> list[tuple[int, bool]]:
    """(position, success) of the episodes of a batch that the memories take, in batch order.

    At most `max_new_successes` successes, so that S changes slowly, and as many failures as F
    holds: more would push each other out at once. Where there are more failures than that, or
    success is relative, they are drawn at random.
    """
    success = judge(summaries, options)
    won, lost = np.flatnonzero(success), np.flatnonzero(~success)
    if len(won) > options.max_new_successes:
        won = rng.choice(won, options.max_new_successes, replace=False)
    if len(lost) > options.failures_kept:
        lost = rng.choice(lost, options.failures_kept, replace=False)
    return [(int(i), bool(success[i])) for i in np.sort(np.concatenate([won, lost]))]
