"""From curves over seeds to a verdict on a claim: agrees, disagrees or undecided, with the numbers.

Sober rules: fewer than three seeds, or a run that has not ended, decide nothing. A run that ended
without reaching the threshold counts as never there; where it is to be the slower of two, only as
slower than the steps that it played. Quartiles are order statistics: runs that never get there
have a place in the order, but no number to interpolate with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rllib_conspec.report.curves import Curve

AGREES, DISAGREES, UNDECIDED = "agrees", "disagrees", "undecided"
MIN_SEEDS = 3
ALIKE = 1.5  # medians of steps within this factor are alike
APART = 2.0  # and beyond this one, with quartiles that do not meet, they are not
SHARE = 0.25  # the same for returns: a difference over the larger of the two


@dataclass(frozen=True)
class Outcome:
    """One seed of a line."""

    seed: int
    curve: Curve
    ended: bool  # by its own criteria

    def steps_to(self, threshold: float) -> float:
        return self.curve.steps_to(threshold)

    def at_least(self, threshold: float) -> float:
        """Steps to the threshold, or the steps in which it was not reached."""
        reached = self.steps_to(threshold)
        return reached if math.isfinite(reached) else self.played

    @property
    def played(self) -> float:
        return float(self.curve.steps[-1])

    @property
    def final(self) -> float:
        return float(self.curve.values[-1])


Outcomes = Mapping[str, Sequence[Outcome]]  # by a line's key


@dataclass(frozen=True)
class Finding:
    verdict: str
    text: str


@dataclass(frozen=True)
class Measure:
    """What is looked at: steps to a threshold, or without one the value at the end."""

    threshold: float | None

    def values(self, outcomes: Sequence[Outcome], lower_bound: bool = False) -> list[float]:
        if self.threshold is None:
            return [o.final for o in outcomes]
        if lower_bound:
            return [o.at_least(self.threshold) for o in outcomes]
        return [o.steps_to(self.threshold) for o in outcomes]

    def solved(self, outcomes: Sequence[Outcome]) -> int:
        return sum(math.isfinite(v) for v in self.values(outcomes))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile: each one of the values, infinity among them."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
    return float(low), float(middle), float(high)


@dataclass(frozen=True)
class Expectation:
    """What one claim means for one line or two; `lines` are their keys."""

    first: str
    second: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.first, self.second) if self.second else (self.first,)

    def judge(self, outcomes: Outcomes, threshold: float | None) -> Finding:
        for key in self.lines:
            found = outcomes.get(key, ())
            if len(found) < MIN_SEEDS:
                have = f"{len(found)} seed" + ("" if len(found) == 1 else "s")
                return self._finding(UNDECIDED, f"{key} has {have}, fewer than {MIN_SEEDS}")
            if running := sum(not o.ended for o in found):
                return self._finding(UNDECIDED, f"{key}: {running} of {len(found)} have not ended")
        verdict, why = self._decide([outcomes[key] for key in self.lines], Measure(threshold))
        return self._finding(verdict, why)

    def _finding(self, verdict: str, why: str) -> Finding:
        return Finding(verdict, f"{self.sentence}: {why}")

    @property
    def sentence(self) -> str:
        raise NotImplementedError

    def _decide(self, lines: list[Sequence[Outcome]], measure: Measure) -> tuple[str, str]:
        raise NotImplementedError


class Solves(Expectation):
    @property
    def sentence(self) -> str:
        return f"{self.first} is solved"

    def _decide(self, lines: list[Sequence[Outcome]], measure: Measure) -> tuple[str, str]:
        solved, seeds = measure.solved(lines[0]), len(lines[0])
        longest = max(o.played for o in lines[0])
        why = f"{solved} of {seeds} seeds within {longest:,.0f} steps"
        return _by_half(2 * solved - seeds), why


class Fails(Solves):
    @property
    def sentence(self) -> str:
        return f"{self.first} is not solved"

    def _decide(self, lines: list[Sequence[Outcome]], measure: Measure) -> tuple[str, str]:
        verdict, why = super()._decide(lines, measure)
        opposite = {AGREES: DISAGREES, DISAGREES: AGREES, UNDECIDED: UNDECIDED}
        return opposite[verdict], f"solved by {why}"


class Better(Expectation):
    """Sooner at the threshold, or where there is none, higher in the end."""

    @property
    def sentence(self) -> str:
        return f"{self.first} does better than {self.second}"

    def _decide(self, lines: list[Sequence[Outcome]], measure: Measure) -> tuple[str, str]:
        a, b = (quartiles(measure.values(line)) for line in lines)
        if measure.threshold is None:
            ahead, behind = a[0] > b[2], b[0] > a[2]
        else:
            # The slower one's runs that never got there are slower than what they played, at least.
            least_a, least_b = (quartiles(measure.values(line, True)) for line in lines)
            ahead, behind = a[2] < least_b[0], b[2] < least_a[0]
        verdict = AGREES if ahead else DISAGREES if behind else UNDECIDED
        apart = "" if ahead or behind else ", quartiles meet"
        return verdict, f"{_spread(a, measure)} against {_spread(b, measure)}{apart}"


class Alike(Expectation):
    @property
    def sentence(self) -> str:
        return f"{self.first} does as well as {self.second}"

    def _decide(self, lines: list[Sequence[Outcome]], measure: Measure) -> tuple[str, str]:
        a, b = (quartiles(measure.values(line)) for line in lines)
        why = f"{_spread(a, measure)} against {_spread(b, measure)}"
        meet = a[0] <= b[2] and b[0] <= a[2]
        if measure.threshold is None:
            near = abs(a[1] - b[1]) <= SHARE * max(abs(a[1]), abs(b[1]))
            return AGREES if near and meet else UNDECIDED if near or meet else DISAGREES, why
        there = [math.isfinite(quarters[1]) for quarters in (a, b)]
        if not all(there):
            return (DISAGREES if any(there) else UNDECIDED), why
        factor = max(a[1], b[1]) / min(a[1], b[1])
        if factor <= ALIKE:
            return AGREES, why
        return DISAGREES if factor > APART and not meet else UNDECIDED, why


def overall(findings: Sequence[Finding]) -> str:
    """One that disagrees is enough to disagree; all are needed to agree."""
    verdicts = [finding.verdict for finding in findings]
    if DISAGREES in verdicts:
        return DISAGREES
    return AGREES if verdicts and set(verdicts) == {AGREES} else UNDECIDED


def _by_half(more: int) -> str:
    return AGREES if more > 0 else DISAGREES if more < 0 else UNDECIDED


def _spread(quarters: tuple[float, float, float], measure: Measure) -> str:
    if not any(map(math.isfinite, quarters)):
        return f"never {measure.threshold:g}"
    low, middle, high = (number(value) for value in quarters)
    what = "at the end" if measure.threshold is None else f"steps to {measure.threshold:g}"
    return f"{middle} {what} (quartiles {low} and {high})"


def number(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
