"""Figures of OrangeTree. Small: in process, one core a run, 200,000 steps and more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rllib_conspec.reproduce.expectations import Alike, Fails, Solves
from rllib_conspec.reproduce.figure import PAPER, Figure, Line, Run
from rllib_conspec.reproduce.table.runs import SOLVED, STEPS, both_scales

TREE = "OrangeTree"
_STOP = {STEPS: 250_000, **SOLVED}


def _conspec(scale: str) -> Run:
    if scale == PAPER:
        return Run("orangetree", "paper/orangetree")
    known = "orangetree_new_seeds/conspec_[0-9]*.csv"
    return Run("orangetree", "orangetree_inprocess", stop=_STOP, minutes=14.0, known=known)


def _ppo(scale: str) -> Run:
    if scale == PAPER:
        return Run("orangetree_ppo", "paper/orangetree_ppo")
    known = "orangetree/ppo_[0-9]*.csv"
    return Run("orangetree_ppo", "orangetree_ppo", stop=_STOP, minutes=35.0, known=known)


def _rival(name: str, scale: str, **config: Any) -> Run:
    """PPO alone with a rival laid over it: a policy and batches that are the same for all."""
    base = _ppo(scale)
    return Run(f"orangetree_{name}", base.example, config, stop=base.stop, minutes=base.minutes)


def _systems(scale: str) -> Iterator[Line]:
    yield Line(TREE, "ConSpec", _conspec(scale))
    yield Line(TREE, "PPO", _ppo(scale))
    yield Line(TREE, "SynthRs", _rival("synthrs", scale, reward_models={"synthrs": {}}))
    yield Line(TREE, "CURL", _rival("curl", scale, auxiliary={"curl": {}}))


def _rad(scale: str) -> Iterator[Line]:
    yield Line(TREE, "ConSpec", _conspec(scale))
    yield Line(TREE, "RAD", _rival("rad", scale, auxiliary={"rad": {}}))


def _sigmoid(scale: str) -> Iterator[Line]:
    models = {"synthrs": {"gate": "sigmoid"}}
    yield Line(TREE, "ConSpec", _conspec(scale))
    yield Line(TREE, "SynthRs, sigmoid", _rival("sigmoid", scale, reward_models=models))


def _lambda(scale: str) -> Iterator[Line]:
    run = _conspec(scale)
    changed = {"conspec": {"intrinsic_coeff": 0.2}}
    less = Run("orangetree_lambda_0.2", run.example, changed, stop=run.stop, minutes=run.minutes)
    yield Line(TREE, "λ = 0.5", run)
    yield Line(TREE, "λ = 0.2", less)


FIGURES = (
    Figure(
        "orangetree",
        "Fig. 2b",
        "OrangeTree",
        "ConSpec learns OrangeTree nearly perfectly; PPO, SynthRs and CURL do not.",
        both_scales(_systems),
        (
            Solves(f"{TREE}: ConSpec"),
            *(Fails(f"{TREE}: {label}") for label in ("PPO", "SynthRs", "CURL")),
        ),
    ),
    Figure(
        "black_and_room",
        "Fig. 3e, f",
        "OrangeTree, black objects and another room",
        "What was learned holds for black objects at once, and for another room after few gradient "
        "steps.",
        elsewhere="has a command of its own, python benchmarks/invariance.py (docs/orangetree.md)",
    ),
    Figure(
        "rad",
        "Fig. A.14",
        "OrangeTree, RAD",
        "RAD does not learn OrangeTree, which ConSpec does.",
        both_scales(_rad),
        (Solves(f"{TREE}: ConSpec"), Fails(f"{TREE}: RAD")),
    ),
    Figure(
        "sigmoid_orangetree",
        "Fig. A.15b",
        "OrangeTree, SynthRs with a sigmoid gate",
        "With its own sigmoid gate SynthRs does not learn OrangeTree in the time that it had.",
        both_scales(_sigmoid),
        (Solves(f"{TREE}: ConSpec"), Fails(f"{TREE}: SynthRs, sigmoid")),
    ),
    Figure(
        "lambda_orangetree",
        "Fig. A.9a",
        "OrangeTree, λ 0.2 and 0.5",
        "On OrangeTree λ may be 0.2 or 0.5 with little difference.",
        both_scales(_lambda),
        (Solves(f"{TREE}: λ = 0.2"), Alike(f"{TREE}: λ = 0.2", f"{TREE}: λ = 0.5")),
    ),
)
