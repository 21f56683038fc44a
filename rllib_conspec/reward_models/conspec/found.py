"""What ConSpec found: for every prototype that met the criterion, the steps that it matches best.

Everything comes from the learner's own exemplars, so that no environment and no Ray is needed to
look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.base import Description, Moment, Row, Timeline, Trace
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.scorer import episode_scores
from rllib_conspec.reward_models.moments import different_first, likeliest, shares_near


@dataclass(frozen=True)
class Found:
    """One prototype's best matches, one in each of K successful episodes."""

    prototype: int
    episodes: tuple[Episode, ...]  # K successes
    steps: np.ndarray  # [K] step of the best match in each
    scores: np.ndarray  # [K] that match
    separation: float  # mean best match in successes minus that in failures
    events: dict[str, float]  # event → share of the successes with it in which it is near the match
    traces: tuple[Trace, ...] = ()  # its scores in these successes, then in failures
    facts: Mapping[str, str] = field(default_factory=dict)  # more of it, for reports

    @property
    def name(self) -> str:
        """The event found most often, if any is found in at least half of the successes."""
        return likeliest(self.events)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Best matches first, each different frame once, then repeats."""
        order = np.argsort(-self.scores, kind="stable")
        return different_first(
            Moment(self.episodes[k], int(self.steps[k]), float(self.scores[k])) for k in order
        )

    @property
    def title(self) -> str:
        return f"prototype {self.prototype}" + (f": {self.name}" if self.name else "")

    @property
    def row(self) -> Row:
        facts = {
            "step, with quartiles": self._when,
            "match in successes": f"{self.scores.mean():.2f}",
            "separation": f"{self.separation:.2f}",
        }
        return Row(self.title, self.moments, self.traces, facts | self.facts)

    @property
    def _when(self) -> str:
        low, middle, high = np.percentile(self.steps, [25, 50, 75]).astype(int)
        return f"{middle} ({low}–{high})"

    def __str__(self) -> str:
        what = f"{self.name} ({self.events[self.name]:.0%} of successes), " if self.name else ""
        return (
            f"prototype {self.prototype}: {what}step {self._when}, "
            f"match {self.scores.mean():.2f}, separation {self.separation:.2f}"
        )


def describe(learner: ConSpecLearner) -> Description:
    """A line and a row of matches for every prototype that pays."""
    found = sorted(find(learner), key=lambda f: learner.met_at.get(f.prototype, 0))
    if not found:
        return Description(("no critical step yet: no prototype has met the criterion",))
    return Description(
        tuple(str(f) for f in found),
        galleries={"prototypes": tuple(f.row for f in found)},
        timelines=_timelines(learner, found),
    )


def find(
    learner: ConSpecLearner,
    successes: Sequence[Episode] | None = None,
    failures: Sequence[Episode] | None = None,
) -> list[Found]:
    """What each paying prototype matches in `successes` (default: in its own exemplars)."""
    found = []
    for i in np.flatnonzero(learner.met):
        own = learner.memory.examples(int(i))
        won, lost = successes or own[0], failures or own[1]
        if won:
            found.append(_found(learner, int(i), won, lost))
    return found


def _found(
    learner: ConSpecLearner, i: int, won: Sequence[Episode], lost: Sequence[Episode]
) -> Found:
    s, in_failures = (
        [scores[i] for scores in episode_scores(learner.model, kind)] if kind else []
        for kind in (won, lost)
    )
    steps = np.array([int(x.argmax()) for x in s])
    failed = [x.max() for x in in_failures] or [0.0]
    best = np.array([x.max() for x in s])
    return Found(
        prototype=i,
        episodes=tuple(won),
        steps=steps,
        scores=best,
        separation=float(best.mean() - np.mean(failed)),
        events=shares_near(won, [[t] for t in steps]),
        traces=(*(Trace(True, x) for x in s), *(Trace(False, x) for x in in_failures)),
        facts=_history(learner, i),
    )


def _history(learner: ConSpecLearner, i: int) -> dict[str, str]:
    """When it met the criterion, and what episodes say of it that it has not learned from."""
    facts = {}
    if not np.isnan(learner.unseen_separation[i]):
        facts["separation, unseen"] = f"{learner.unseen_separation[i]:.2f}"
    if i in learner.met_at:
        froze = "froze" if learner.options.freeze else "met the criterion"
        facts[froze] = f"update {learner.met_at[i]} of {learner.batches}"
    return facts


def _timelines(learner: ConSpecLearner, found: Sequence[Found]) -> tuple[Timeline, ...]:
    """Of what the prototype that was last to freeze knows: the success in which the worst of all
    matches is best, and the newest failure.
    """
    won, lost = learner.memory.examples(found[-1].prototype)
    which = [f.prototype for f in found]
    scores = [s[which] for s in episode_scores(learner.model, (*won, *lost[-1:]))]  # [H, T] each
    clearest = max(range(len(won)), key=lambda k: scores[k].max(axis=1).min())
    chosen = [("a success", won[clearest], scores[clearest])]
    if lost:
        chosen.append(("a failure", lost[-1], scores[-1]))
    return tuple(
        Timeline(title, episode, dict(zip((f.title for f in found), s, strict=True)))
        for title, episode, s in chosen
    )


def coverage(learner: ConSpecLearner, successes: Sequence[Episode]) -> dict[str, float]:
    """For every event, the share of successes in which some paying prototype peaks near it."""
    which = np.flatnonzero(learner.met)
    peaks = [scores[which].argmax(axis=1) for scores in episode_scores(learner.model, successes)]
    return shares_near(successes, peaks)
