"""Figures in which ConSpec itself is changed, on the key tasks."""

from __future__ import annotations

from typing import Any

from rllib_conspec.reproduce.expectations import Alike, Fails, Solves
from rllib_conspec.reproduce.figure import Figure, Line
from rllib_conspec.reproduce.table.runs import Lines, both_scales, conspec, key, other, panel


def _beside(keys: int, as_it_is: str, changes: dict[str, dict[str, Any]]) -> Lines:
    """ConSpec as it is, and with other options: label → `example` in ablations/, and options."""

    def lines(scale: str) -> list[Line]:
        found = [Line(panel(keys), as_it_is, conspec(keys, scale))]
        for label, change in changes.items():
            options = dict(change)
            name = options.pop("example")
            run = other(name, keys, scale, f"ablations/{name}", **options)
            found.append(Line(panel(keys), label, run))
        return found

    return both_scales(lines)


FIGURES = (
    Figure(
        "prototypes40",
        "Fig. A.3",
        "1 key, 40 and 8 prototypes",
        "On one key 40 prototypes do as well as 8.",
        _beside(
            1,
            "8 prototypes",
            {"40 prototypes": {"example": "keys1_40_prototypes", "num_prototypes": 40}},
        ),
        (Solves(key(1, "40 prototypes")), Alike(key(1, "40 prototypes"), key(1, "8 prototypes"))),
    ),
    Figure(
        "prototypes",
        "Figs. A.7, A.8",
        "4 keys, 3, 8 and 20 prototypes",
        "How many prototypes there are makes little difference on 4 keys; even 3, fewer than there "
        "are keys, are often enough.",
        _beside(
            4,
            "8 prototypes",
            {
                "20 prototypes": {"example": "keys4_20_prototypes", "num_prototypes": 20},
                "3 prototypes": {"example": "keys4_3_prototypes", "num_prototypes": 3},
            },
        ),
        (
            Solves(key(4, "8 prototypes")),
            Solves(key(4, "3 prototypes")),
            Alike(key(4, "20 prototypes"), key(4, "8 prototypes")),
        ),
    ),
    Figure(
        "lambda",
        "Fig. A.9b",
        "4 keys, λ 0.2 and 0.5",
        "On 4 keys λ may be 0.2 or 0.5 with little difference.",
        _beside(
            4,
            "λ = 0.2",
            {"λ = 0.5": {"example": "keys4_lambda_0.5", "intrinsic_coeff": 0.5}},
        ),
        (Solves(key(4, "λ = 0.5")), Alike(key(4, "λ = 0.5"), key(4, "λ = 0.2"))),
    ),
    Figure(
        "no_freezing",
        "Fig. A.12",
        "4 keys, no freezing",
        "Without freezing of prototypes 4 keys are learned as well as with it.",
        _beside(4, "freezing", {"no freezing": {"example": "keys4_no_freezing", "freeze": False}}),
        (Solves(key(4, "no freezing")), Alike(key(4, "no freezing"), key(4, "freezing"))),
    ),
    Figure(
        "stop_gradient",
        "Fig. A.13",
        "4 keys, stop-gradient",
        "4 keys are not solved when no gradient reaches the prototypes.",
        _beside(
            4,
            "gradient",
            {"stop-gradient": {"example": "keys4_stop_gradient", "stop_gradient": True}},
        ),
        (Solves(key(4, "gradient")), Fails(key(4, "stop-gradient"))),
    ),
)
