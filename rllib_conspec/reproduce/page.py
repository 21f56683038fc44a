"""The Markdown beside the picture: the paper's claim, our verdict, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rllib_conspec.reproduce.expectations import (
    Finding,
    Outcome,
    Outcomes,
    number,
    overall,
    quartiles,
)
from rllib_conspec.reproduce.figure import SMALL, Figure, Line

SCALES = {
    SMALL: "our own settings, sized for one core a run",
    "paper": "the paper's sizes and settings",
}


@dataclass(frozen=True)
class Account:
    """What a page tells besides the outcomes."""

    scale: str
    command: str
    picture: str  # file name
    known: tuple[str, ...] = ()  # files that stand for runs
    missing: tuple[str, ...] = ()  # systems that are not there yet


def findings(figure: Figure, scale: str, outcomes: Outcomes) -> list[Finding]:
    return [e.judge(outcomes, figure.threshold) for e in figure.expected(scale)]


def page(figure: Figure, lines: Sequence[Line], outcomes: Outcomes, account: Account) -> str:
    found = findings(figure, account.scale, outcomes)
    text = [
        f"# {figure.where}: {figure.title}",
        "",
        f"![{figure.title}]({account.picture})",
        "",
        "Median and quartiles over seeds. A run that ended because it was solved keeps its last "
        "value.",
        "",
        f"**The paper:** {figure.claim}",
        "",
        f"**Here: {overall(found)}.** Scale: {account.scale}, {SCALES[account.scale]}.",
        "",
        *(f"- {finding.verdict}: {finding.text}" for finding in found),
        "",
        *_table(figure, lines, outcomes),
        "",
    ]
    missing = (*account.missing, *figure.lacks)
    if missing:
        text += [f"Not there yet, and therefore not in the picture: {', '.join(missing)}.", ""]
    if account.known:
        text += [
            "Not run for this page but kept from earlier runs: "
            + ", ".join(f"`{name}`" for name in account.known)
            + ".",
            "",
        ]
    return "\n".join([*text, "```", account.command, "```", ""])


def _table(figure: Figure, lines: Sequence[Line], outcomes: Outcomes) -> list[str]:
    head = ["", "seeds", "steps played", "at the end"]
    if figure.threshold is not None:
        head += [f"reached {figure.threshold:g}", f"steps to {figure.threshold:g}"]
    rows = [head, ["---"] * len(head)]
    rows += [_row(figure, line, outcomes.get(line.key, ())) for line in lines]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _row(figure: Figure, line: Line, outcomes: Sequence[Outcome]) -> list[str]:
    columns = 4 if figure.threshold is None else 6
    if not outcomes:
        return [line.key, "0", *[""] * (columns - 2)]
    running = sum(not o.ended for o in outcomes)
    seeds = f"{len(outcomes)}" + (f", {running} not ended" if running else "")
    played = [o.played for o in outcomes]
    steps = number(min(played))
    if max(played) > min(played):
        steps += f" to {number(max(played))}"
    row = [line.key, seeds, steps, _spread([o.final for o in outcomes])]
    if figure.threshold is not None:
        to = [o.steps_to(figure.threshold) for o in outcomes]
        reached = sum(value != float("inf") for value in to)
        row += [f"{reached} of {len(to)}", _spread(to)]
    return row


def _spread(values: Sequence[float]) -> str:
    low, middle, high = quartiles(values)
    return f"{number(middle)} ({number(low)}, {number(high)})"
