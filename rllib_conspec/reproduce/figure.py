"""What a figure of the paper is made of. Data only: the figures themselves are in `table/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rllib_conspec.errors import UserError, did_you_mean
from rllib_conspec.report.curves import SUCCESS
from rllib_conspec.reproduce.expectations import Expectation

SOLVED = 0.9  # success rate, mean of the last 20 iterations
SMALL, PAPER = "small", "paper"


@dataclass(frozen=True)
class Run:
    """One system on one task: a tuned example, and what is laid over it. Figures share runs: what
    one has trained the other does not train again.
    """

    name: str  # of its directory; one name, one run
    example: str  # of tuned_examples/
    config: Mapping[str, Any] = field(default_factory=dict)
    stop: Mapping[str, float] | None = None  # in place of the example's
    minutes: float | None = None  # of one core to its end, where it is known
    known: str = ""  # files below docs/results that hold curves of it, a glob
    first: tuple[str, str] | None = None  # a file that must be there, and the command that makes it


@dataclass(frozen=True)
class Line:
    """One line of a picture: a run for each seed."""

    panel: str
    label: str
    run: Run

    @property
    def key(self) -> str:
        """What expectations name it by."""
        return f"{self.panel}: {self.label}"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper that has data in it."""

    name: str
    where: str  # in the paper
    title: str
    claim: str  # what the paper says that it shows, in our words
    scales: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    expects: tuple[Expectation, ...] = ()
    metric: tuple[str, ...] = SUCCESS
    threshold: float | None = SOLVED  # of success rates; returns have none
    lacks: tuple[str, ...] = ()  # systems of the paper's figure that no example is there for
    elsewhere: str = ""  # where it is made by a command of its own

    def lines(self, scale: str) -> tuple[Line, ...]:
        if not self.scales:
            why = self.elsewhere or f"not there yet: {', '.join(self.lacks)}"
            raise UserError(f"reproduce {self.name}: {why}.")
        if scale not in self.scales:
            raise UserError(
                f'reproduce {self.name}: has no scale "{scale}", only {" and ".join(self.scales)}.'
            )
        return self.scales[scale]

    def expected(self, scale: str) -> tuple[Expectation, ...]:
        """The expectations whose lines this scale has."""
        keys = {line.key for line in self.lines(scale)}
        return tuple(e for e in self.expects if keys.issuperset(e.lines))


def find(name: str, figures: Mapping[str, Figure]) -> Figure:
    if name not in figures:
        near = did_you_mean(name, figures)
        raise UserError(f'reproduce: no figure "{name}".{near} See: rllib reproduce list')
    return figures[name]
