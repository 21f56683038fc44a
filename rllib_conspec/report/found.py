"""What ConSpec found: for every prototype that met the criterion, the steps that it matches best.

Everything comes from a checkpoint's own exemplars, so that no environment and no Ray is needed to
look.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rllib_conspec.errors import UserError
from rllib_conspec.retrospection.conspec import ConSpecLearner
from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.scorer import episode_scores

NEAR = 2  # steps between a prototype's best match and an event that it is said to have found


@dataclass(frozen=True)
class Found:
    """One prototype's best matches in successful episodes."""

    prototype: int
    steps: np.ndarray  # [K] step of the best match in each success
    scores: np.ndarray  # [K] that match
    frames: np.ndarray  # [K, *shape] the frames matched
    separation: float  # mean best match in successes minus that in failures
    events: dict[str, float]  # event → share of the successes with it in which it is near the match

    @property
    def name(self) -> str:
        """The event found most often, if any is found in at least half of the successes."""
        best = max(self.events, key=self.events.get, default="")
        return best if best and self.events[best] >= 0.5 else ""

    def __str__(self) -> str:
        low, middle, high = np.percentile(self.steps, [25, 50, 75]).astype(int)
        what = f"{self.name} ({self.events[self.name]:.0%} of successes), " if self.name else ""
        return (
            f"prototype {self.prototype}: {what}step {middle} ({low}–{high}), "
            f"match {self.scores.mean():.2f}, separation {self.separation:.2f}"
        )


def load_learner(checkpoint: str | Path) -> ConSpecLearner:
    """The learner's side of ConSpec from an RLlib checkpoint directory."""
    path = Path(checkpoint) / "learner_group" / "learner" / "state.pkl"
    try:
        state = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{checkpoint}: not an RLlib checkpoint (no {path.name} in it).") from None
    except (EOFError, pickle.UnpicklingError) as error:
        raise UserError(f"{checkpoint}: the checkpoint is cut short ({error}).") from None
    if "reward_model" not in state:
        raise UserError(f"{checkpoint}: this run had no ConSpec, so there are no prototypes.")
    return ConSpecLearner.from_state(state["reward_model"])


def find(
    learner: ConSpecLearner,
    successes: Sequence[StoredEpisode] | None = None,
    failures: Sequence[StoredEpisode] | None = None,
) -> list[Found]:
    """What each paying prototype matches in `successes` (default: in its own exemplars)."""
    found = []
    for i in np.flatnonzero(learner.met):
        own = learner.exemplars.get(int(i))
        won = successes or (own.successes if own else tuple(learner.successes))
        lost = failures or (own.failures if own else tuple(learner.failures))
        if won:
            found.append(_found(learner, int(i), won, lost))
    return found


def _found(
    learner: ConSpecLearner, i: int, won: Sequence[StoredEpisode], lost: Sequence[StoredEpisode]
) -> Found:
    s = [scores[i] for scores in episode_scores(learner.model, won)]
    steps = np.array([int(x.argmax()) for x in s])
    failed = [scores[i].max() for scores in episode_scores(learner.model, lost)] if lost else [0.0]
    best = np.array([x.max() for x in s])
    return Found(
        prototype=i,
        steps=steps,
        scores=best,
        frames=np.stack([e.frames[t] for e, t in zip(won, steps, strict=True)]),
        separation=float(best.mean() - np.mean(failed)),
        events=_shares_near(won, [[t] for t in steps]),
    )


def coverage(learner: ConSpecLearner, successes: Sequence[StoredEpisode]) -> dict[str, float]:
    """For every event, the share of successes in which some paying prototype peaks near it."""
    which = np.flatnonzero(learner.met)
    peaks = [scores[which].argmax(axis=1) for scores in episode_scores(learner.model, successes)]
    return _shares_near(successes, peaks)


def _shares_near(
    episodes: Sequence[StoredEpisode], peaks: Sequence[Sequence[int]]
) -> dict[str, float]:
    """Share of the episodes with an event in which one of `peaks` lies within NEAR steps of it."""
    hits: dict[str, list[bool]] = {}
    for episode, steps in zip(episodes, peaks, strict=True):
        for t, name in episode.events:
            near = any(abs(int(step) - t) <= NEAR for step in steps)
            hits.setdefault(name, []).append(near)
    return {name: float(np.mean(near)) for name, near in sorted(hits.items())}
