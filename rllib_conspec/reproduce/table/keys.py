"""Figures of the key tasks that compare systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rllib_conspec.reproduce.expectations import Better, Fails, Solves
from rllib_conspec.reproduce.figure import PAPER, SMALL, Figure, Line, Run
from rllib_conspec.reproduce.table.runs import (
    KEYS,
    MINUTES,
    RIVALS,
    both_scales,
    conspec,
    key,
    other,
    panel,
    ppo,
    rival,
    until,
)

CONJUNCTIVE = "4 conjunctive keys"


def _multikeys(scale: str) -> Iterator[Line]:
    for keys in KEYS if scale == PAPER else KEYS[:3]:
        yield Line(panel(keys), "ConSpec", conspec(keys, scale))
        yield Line(panel(keys), "PPO", ppo(keys, scale))


def _rivals(scale: str) -> Iterator[Line]:
    for keys in KEYS:
        yield Line(panel(keys), "ConSpec", conspec(keys, scale))
        for label, example in RIVALS.items():
            yield Line(panel(keys), label, rival(example, keys, scale))


def _one_key(scale: str) -> Iterator[Line]:
    yield Line("on PPO", "ConSpec", conspec(1, scale))
    yield Line("on PPO", "PPO", ppo(1, scale))
    for label in ("SynthRs", "RUDDER", "RND"):
        yield Line("on PPO", label, rival(RIVALS[label], 1, scale))
    for label, example in (("ConSpec on RMA", "conspec_rma"), ("RMA", "rma"), ("TVT", "tvt")):
        yield Line("on RMA", label, rival(example, 1, scale))


def _on_rma(scale: str) -> Iterator[Line]:
    for keys in KEYS:
        yield Line(panel(keys), "ConSpec on RMA", rival("conspec_rma", keys, scale))


def _potential(scale: str) -> Iterator[Line]:
    options = {"intrinsic": "potential", "intrinsic_coeff": 0.5}
    for keys in KEYS:
        example = "paper/keys4_potential" if keys == 4 else ""
        run = other(f"keys{keys}_potential", keys, scale, example, **options)
        yield Line(panel(keys), "ConSpec, potential", run)


def _sigmoid(scale: str) -> Iterator[Line]:
    for keys in KEYS:
        yield Line(panel(keys), "SynthRs, sigmoid", rival("synthrs_sigmoid", keys, scale))


def _conjunctive(scale: str) -> Iterator[Line]:
    env: dict[str, Any] = {"env_config": {"conjunctive": True}}
    if scale == PAPER:
        ours = Run("keys4_conjunctive", "paper/keys4_conjunctive")
        alone = Run("keys4_conjunctive_ppo", "paper/keys4_conjunctive_ppo")
    else:
        many = {**env, "conspec": {"num_prototypes": 16}}
        ours = Run("keys4_conjunctive", "keys4", many, stop=until(4), minutes=10.0)
        alone = Run("keys4_conjunctive_ppo", "keys4_ppo", env, stop=until(4), minutes=MINUTES[4])
    yield Line(CONJUNCTIVE, "ConSpec", ours)
    yield Line(CONJUNCTIVE, "PPO", alone)
    for label, example in RIVALS.items():
        yield Line(CONJUNCTIVE, label, rival(example, 4, scale, conjunctive=True))


def _decision_transformer(scale: str) -> Iterator[Line]:
    example = "rivals/decision_transformer"

    def learning_from(file: str, only: str) -> Run:
        record = f"rllib record {file} -f tuned_examples/{example}.yaml --all --episodes 2000{only}"
        return Run(file.removesuffix(".rec"), example, {"recordings": file}, first=(file, record))

    yield Line("1 key", "ConSpec", conspec(1, scale))
    yield Line("1 key", "DT", learning_from("dt_keys1.rec", ""))
    few = learning_from("dt_keys1_two_actions.rec", " --only 0 --only 3")
    yield Line("1 key", "DT, constrained actions", few)


FIGURES = (
    Figure(
        "multikeys",
        "Fig. 4c",
        "1 to 4 keys, ConSpec and PPO",
        "PPO with ConSpec learns the key tasks fast, however many keys there are. (The paper shows "
        "PPO alone for one key; here it stands beside ConSpec everywhere.)",
        both_scales(_multikeys),
        (
            *(Solves(key(k, "ConSpec")) for k in KEYS),
            *(Better(key(k, "ConSpec"), key(k, "PPO")) for k in KEYS),
        ),
    ),
    Figure(
        "rivals",
        "Fig. 4c–g",
        "1 to 4 keys, all rivals",
        "SynthRs, RND, RUDDER and TVT solve one key and collapse with more of them; ConSpec does "
        "not.",
        both_scales(_rivals),
        (
            *(Solves(key(k, "ConSpec")) for k in KEYS),
            *(Solves(key(1, label)) for label in RIVALS),
            *(Fails(key(k, label)) for k in (3, 4) for label in RIVALS),
        ),
    ),
    Figure(
        "one_key",
        "Figs. A.2, A.4, A.5",
        "1 key, on PPO and on RMA",
        "One key is solved by ConSpec on PPO and on RMA, and by SynthRs, RUDDER, RND and TVT, too.",
        both_scales(_one_key),
        (
            *(Solves(f"on PPO: {label}") for label in ("ConSpec", "SynthRs", "RUDDER", "RND")),
            *(Solves(f"on RMA: {label}") for label in ("ConSpec on RMA", "TVT")),
        ),
    ),
    Figure(
        "decision_transformer",
        "Fig. A.6",
        "1 key, a Decision Transformer",
        "From free actions a Decision Transformer does not learn one key, from constrained ones it "
        "does; ConSpec needs no constraint.",
        {SMALL: tuple(_decision_transformer(SMALL))},
        (
            Solves("1 key: ConSpec"),
            Fails("1 key: DT"),
            Solves("1 key: DT, constrained actions"),
        ),
    ),
    Figure(
        "rma",
        "Fig. A.10",
        "ConSpec on RMA, 1 to 4 keys",
        "On RMA, too, ConSpec learns all of the key tasks fast.",
        both_scales(_on_rma),
        tuple(Solves(key(k, "ConSpec on RMA")) for k in KEYS),
    ),
    Figure(
        "potential",
        "Fig. A.11",
        "the intrinsic reward as a potential, 1 to 4 keys",
        "With the form of the intrinsic reward that leaves the best policy unchanged, ConSpec "
        "learns all of the key tasks fast.",
        both_scales(_potential),
        tuple(Solves(key(k, "ConSpec, potential")) for k in KEYS),
    ),
    Figure(
        "sigmoid_keys",
        "Fig. A.15a",
        "SynthRs with a sigmoid gate, 1 to 4 keys",
        "With its own sigmoid gate SynthRs does not solve the key tasks in the time that it had.",
        both_scales(_sigmoid),
        tuple(Fails(key(k, "SynthRs, sigmoid")) for k in KEYS),
    ),
    Figure(
        "conjunctive",
        "Fig. A.16",
        "4 keys that do not depend on each other",
        "ConSpec learns the conjunctive task fast; TVT, RUDDER, SynthRs and RND collapse on it.",
        both_scales(_conjunctive),
        (
            Solves(f"{CONJUNCTIVE}: ConSpec"),
            *(Fails(f"{CONJUNCTIVE}: {label}") for label in RIVALS),
        ),
    ),
)
