"""Small options, models and random episodes for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes

SHAPES = {"mlp": (4,), "conv": (3, 3, 3)}
FORMS = ("mixed", "paper", "code")
SMALL = {"encoder": "mlp", "encoder_dim": 8, "projection_dim": 6}
# The same examples in every run: a failure can be looked into.
examples = settings(deadline=None, derandomize=True)


def options(**values) -> ConSpecOptions:
    """The defaults in a small size, with these changes."""
    return ConSpecOptions.from_dict(SMALL | values)


def model(o: ConSpecOptions, seed: int = 0) -> Prototypes:
    """A model in double precision, with biases that are not zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = Prototypes(o, SHAPES[o.encoder]).double()
        for name, weights in built.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(weights, std=0.1)
    return built


def frames(o: ConSpecOptions, count: int, seed: int) -> np.ndarray:
    """Random observations: bytes for an encoder of pixels, else float32."""
    rng = np.random.default_rng(seed)
    shape = (count, *SHAPES[o.encoder])
    if o.encoder == "conv":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.normal(size=shape).astype(np.float32)


def episode(frames: np.ndarray, success: bool = False, events=()) -> Episode:
    """An episode that leads to these frames [T, *shape], from an observation unlike any of them:
    what an episode starts with must never be looked at.
    """
    observations = np.concatenate([np.full_like(frames[:1], 77), frames])
    steps = np.zeros(len(frames))
    return Episode(observations, steps.astype(int), steps, success=success, events=events)


def episodes(o: ConSpecOptions, lengths, seed: int) -> tuple[Episode, ...]:
    """One episode of random frames for every length."""
    pool = np.split(frames(o, sum(lengths), seed), np.cumsum(lengths)[:-1])
    return tuple(episode(part) for part in pool)


def contents(kept) -> list[bytes]:
    """The frames of every episode: memories keep copies."""
    return [e.frames.tobytes() for e in kept]


# --- a synthetic task: every success shows a marker once, no failure does ----------------------

MARKER = np.array([3.0, -3.0, 3.0, 3.0], dtype=np.float32)


def marked_episode(rng: np.random.Generator, success: bool, length: int = 8) -> Episode:
    """Random frames; a success has the marker, slightly disturbed, at a random step."""
    steps = rng.normal(size=(length, 4)).astype(np.float32)
    if success:
        steps[rng.integers(length)] = MARKER + rng.normal(scale=0.1, size=4)
    return episode(steps, success)


def marked_episodes(
    rng: np.random.Generator, won: int, lost: int
) -> tuple[list[Episode], list[Episode]]:
    """Successes and failures."""
    return (
        [marked_episode(rng, True) for _ in range(won)],
        [marked_episode(rng, False) for _ in range(lost)],
    )


def marker_step(episode: Episode) -> int:
    return int(np.abs(episode.frames - MARKER).sum(axis=1).argmin())


# --- random problems --------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Everything one evaluation of the loss depends on."""

    options: ConSpecOptions
    seed: int
    softmax_scale: float
    active: int
    live: tuple[tuple[Episode, ...], tuple[Episode, ...]]
    exemplars: dict[int, tuple[tuple[Episode, ...], tuple[Episode, ...]]]


@st.composite
def problems(draw) -> Problem:
    """Unequal lengths, frames repeated within and across episodes, live and frozen prototypes."""
    count = draw(st.integers(1, 4))
    o = options(
        num_prototypes=count,
        encoder=draw(st.sampled_from(["mlp", "conv"])),
        form=draw(st.sampled_from(FORMS)),
        top_k=draw(st.sampled_from([1, 1, 2, 3, 20])),
        diversity=draw(st.sampled_from(["cosine", "entropy"])),
        diversity_window=draw(st.sampled_from([0, 0, 1, 3])),
        diversity_moves=draw(st.sampled_from(["all", "live"])),
        diversity_coeff=draw(st.sampled_from([0.0, 0.2, 0.4])),
        threshold=draw(st.sampled_from([0.01, 0.3, 0.6])),
        stop_gradient=draw(st.booleans()),
    )
    seed = draw(st.integers(0, 10_000))
    pool = frames(o, draw(st.integers(1, 8)), seed)
    step = st.integers(0, len(pool) - 1)

    def some() -> tuple[Episode, ...]:
        chosen = draw(st.lists(st.lists(step, min_size=1, max_size=5), min_size=1, max_size=3))
        return tuple(episode(pool[steps]) for steps in chosen)

    active = draw(st.integers(1, count))
    frozen = draw(st.sets(st.integers(0, active - 1)))
    live = some(), some()
    # Prototypes that froze together share exemplars; some episodes are still in the live memories.
    shared = (live[0] + some(), live[1])
    return Problem(
        o,
        seed,
        draw(st.sampled_from([1.0, 20.0, 100.0])),
        active,
        live,
        {i: shared if draw(st.booleans()) else (some(), some()) for i in sorted(frozen)},
    )
