"""Figures of Atari and of continuous control: returns, which have no threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rllib_conspec.report.curves import RETURN
from rllib_conspec.reproduce.expectations import Alike, Better, Expectation
from rllib_conspec.reproduce.figure import PAPER, SMALL, Figure, Line, Run
from rllib_conspec.reproduce.table.runs import STEPS, both_scales

DELAYED = {"Pong": "pong", "Bowling": "bowling", "AirRaid": "airraid"}
ROBOTS = {"Hopper": "hopper", "Walker2d": "walker2d", "HalfCheetah": "halfcheetah"}
# Some that the paper's figure may stand for: it plays nine of them.
GAMES = ("Breakout", "Qbert", "SpaceInvaders")
REVENGE = "Montezuma's Revenge"
_STOP = {STEPS: 1_000_000}
# What paper/atari_*.yaml have besides ConSpec.
_PAPER_STOP = {"training_iteration": 5000}
_PAPER_PPO = {
    "preset": "paper",
    "success": "top_k",
    "reward_scale": "sign",
    "episodes_per_batch": 8,
    "episodes_per_minibatch": 2,
    "num_envs_per_env_runner": 4,
    "model_config": {"encoder": "impala", "encoder_dim": 256, "core_dim": 0},
}
# By 12 and 15 CPU seconds for an iteration of 8 × 600 and 5 × 1200 steps.
_ATARI_MINUTES, _REVENGE_MINUTES = 42.0, 42.0


def _delayed(scale: str) -> Iterator[Line]:
    for game, name in DELAYED.items():
        if scale == PAPER:
            ours = Run(name, f"paper/atari_{name}")
            alone = Run(f"{name}_ppo", f"atari/{name}_ppo", _PAPER_PPO, stop=_PAPER_STOP)
        else:
            ours = Run(name, f"atari/{name}", stop=_STOP, minutes=_ATARI_MINUTES)
            alone = Run(f"{name}_ppo", f"atari/{name}_ppo", stop=_STOP, minutes=_ATARI_MINUTES)
        yield Line(game, "ConSpec", ours)
        yield Line(game, "PPO", alone)


def _as_they_are() -> Iterator[Line]:
    forms: dict[str, dict[str, Any]] = {
        "ConSpec": {},
        "ConSpec, potential": {"conspec": {"intrinsic": "potential"}},
    }
    for game in GAMES:
        config = {"env_config": {"game": game}}
        for label, options in forms.items():
            name = "_".join([game.lower(), *("potential" for _ in options)])
            run = Run(name, "atari/game", config | options, stop=_STOP, minutes=_ATARI_MINUTES)
            yield Line(game, label, run)
        alone = {"env_config": {"game": game, "delayed": False}}
        name = f"{game.lower()}_ppo"
        run = Run(name, "atari/pong_ppo", alone, stop=_STOP, minutes=_ATARI_MINUTES)
        yield Line(game, "PPO", run)


def _control() -> Iterator[Line]:
    for robot, name in ROBOTS.items():
        for label, example in (("ConSpec", name), ("PPO", f"{name}_ppo")):
            known = f"control/{example}_[0-9]*.csv"
            yield Line(robot, label, Run(example, f"control/{example}", minutes=10.0, known=known))


def _revenge() -> Iterator[Line]:
    for label, name in (("ConSpec", "montezuma"), ("PPO", "montezuma_ppo")):
        run = Run(name, f"atari/{name}", stop=_STOP, minutes=_REVENGE_MINUTES)
        yield Line(REVENGE, label, run)


def _lambda() -> Iterator[Line]:
    for value in (0.2, 0.5):
        options = {} if value == 0.2 else {"conspec": {"intrinsic_coeff": value}}
        name = "montezuma" if value == 0.2 else f"montezuma_lambda_{value}"
        run = Run(name, "atari/montezuma", options, stop=_STOP, minutes=_REVENGE_MINUTES)
        yield Line(REVENGE, f"λ = {value}", run)


def _shown() -> Iterator[Line]:
    record = (
        "rllib record montezuma.rec -f tuned_examples/atari/montezuma.yaml --episodes 8 (and what "
        "docs/atari.md says of it)"
    )
    for count in (2, 4, 8):
        options = {"demonstrations": "montezuma.rec", "num_demonstrations": count}
        run = Run(
            f"montezuma_{count}_shown",
            "atari/montezuma",
            {"conspec": options},
            stop=_STOP,
            minutes=_REVENGE_MINUTES,
            first=("montezuma.rec", record),
        )
        yield Line(REVENGE, f"{count} successes shown", run)
    run = Run("montezuma_ppo", "atari/montezuma_ppo", stop=_STOP, minutes=_REVENGE_MINUTES)
    yield Line(REVENGE, "PPO", run)


def _ahead(panels: dict[str, str]) -> tuple[Expectation, ...]:
    return tuple(Better(f"{name}: ConSpec", f"{name}: PPO") for name in panels)


def _returns(name: str, where: str, title: str, claim: str, **more: Any) -> Figure:
    return Figure(name, where, title, claim, metric=RETURN, threshold=None, **more)


FIGURES = (
    _returns(
        "delayed_atari",
        "Fig. 5",
        "delayed Pong, Bowling and AirRaid",
        "When the score is paid only at the end, ConSpec does better than PPO on all three games.",
        scales=both_scales(_delayed),
        expects=_ahead(DELAYED),
    ),
    _returns(
        "montezuma",
        "Fig. 6a",
        "Montezuma's Revenge",
        "ConSpec gets reward in Montezuma's Revenge, where PPO gets hardly any.",
        scales={SMALL: tuple(_revenge())},
        expects=(Better(f"{REVENGE}: ConSpec", f"{REVENGE}: PPO"),),
    ),
    _returns(
        "montezuma_shown",
        "Fig. 6b",
        "Montezuma's Revenge from 2, 4 and 8 successes",
        "Two successes that were recorded are enough for ConSpec to get reward.",
        scales={SMALL: tuple(_shown())},
        expects=tuple(
            Better(f"{REVENGE}: {count} successes shown", f"{REVENGE}: PPO") for count in (2, 4, 8)
        ),
    ),
    _returns(
        "lambda_montezuma",
        "Fig. A.9c",
        "Montezuma's Revenge, λ 0.2 and 0.5",
        "In Montezuma's Revenge λ may be 0.2 or 0.5 with little difference.",
        scales={SMALL: tuple(_lambda())},
        expects=(Alike(f"{REVENGE}: λ = 0.5", f"{REVENGE}: λ = 0.2"),),
    ),
    _returns(
        "montezuma_rivals",
        "Fig. 6c–e",
        "Montezuma's Revenge, RIMs and Decision Transformers",
        "RIMs and Decision Transformers get no reward in Montezuma's Revenge.",
        lacks=("RIMs on Atari", "a Decision Transformer on Atari"),
    ),
    _returns(
        "control",
        "Fig. 7",
        "delayed Hopper, Walker2d and HalfCheetah",
        "With delayed reward ConSpec does better than PPO on all three robots.",
        scales={SMALL: tuple(_control())},
        expects=_ahead(ROBOTS),
    ),
    _returns(
        "atari",
        "Fig. A.17",
        "Atari games as they are",
        "Without delay PPO, ConSpec and ConSpec with the potential do alike. (The paper has nine "
        f"games; here: {', '.join(GAMES)}.)",
        scales={SMALL: tuple(_as_they_are())},
        expects=tuple(
            Alike(f"{game}: {label}", f"{game}: PPO")
            for game in GAMES
            for label in ("ConSpec", "ConSpec, potential")
        ),
    ),
    _returns(
        "breakout",
        "Fig. A.18",
        "Breakout, RIMs and a Decision Transformer",
        "RIMs and Decision Transformers learn Breakout, so that their failure elsewhere is theirs.",
        lacks=("RIMs on Atari", "a Decision Transformer on Atari"),
    ),
)
