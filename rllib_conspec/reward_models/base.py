"""The seam: all that the rest of the package knows of a reward model.

A reward model looks at whole episodes and pays the agent for steps in them. One class has three
places to work in, and every process makes an object of its own:

* the driver asks it to `choose` what to learn from, by summaries alone;
* each learner gives it those episodes (`update`) and takes a `snapshot`;
* each rollout worker gives it the snapshot (`load`) and asks for rewards (`reward`).

So build what is expensive when it is first used (`functools.cached_property`), not in `__init__`.
`docs/extending.md` writes one from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from rllib_conspec.episodes import Episode, Summary
from rllib_conspec.options import Options


def milestone(count: int, first: int) -> int:
    """The largest of first, 2 · first, 4 · first … that a count has reached: a line that names it
    instead of the count is another one only when it has doubled.
    """
    return first << (count // first).bit_length() - 1


@dataclass(frozen=True)
class Setting:
    """Where a model works: what it is told besides its own options."""

    observation_space: spaces.Box
    action_space: spaces.Space
    gamma: float = 0.99
    # Values of observations lie between 0 and this (pictures) or within ± this (vectors).
    observation_range: float = 255.0
    channels: str = "last"  # of pictures: first or last
    normalize: bool = False  # vectors without a range: scale them by what was seen
    # What is played, and by which program, as far as that is known.
    plays: str = ""
    version: str = ""
    # Where success is relative: the episodes among which the best succeed. None: it is not.
    best_of: int | None = None
    # What the environment's rewards are multiplied by where the policy learns from them, or `sign`.
    reward_scale: float | str = 1.0
    outputs: tuple[str, ...] = ()  # what episodes have in `outputs`, by name
    device: Any = "cpu"  # the learner's
    seed: int | None = None  # equal on all learners, so that what they draw stays equal

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.observation_space.shape)


@dataclass(frozen=True)
class Moment:
    """One step of one episode, worth showing."""

    episode: Episode
    step: int  # 0 … T − 1
    score: float


@dataclass(frozen=True, eq=False)
class Trace:
    """A row's score at every step of one episode."""

    success: bool
    scores: np.ndarray  # [T]


@dataclass(frozen=True)
class Row:
    """Moments that belong together: one row of a gallery. Reports also show the rest, if any."""

    title: str
    moments: tuple[Moment, ...]
    traces: tuple[Trace, ...] = ()  # of episodes of both kinds, to be compared
    facts: Mapping[str, str] = field(default_factory=dict)  # what → how much, both short


@dataclass(frozen=True, eq=False)
class Timeline:
    """One episode from its first step to its last."""

    title: str  # which one it is
    episode: Episode
    scores: Mapping[str, np.ndarray]  # what → [T]; its highest step is shown


@dataclass(frozen=True)
class Description:
    """What a model found, in words and as moments to look at."""

    lines: tuple[str, ...] = ()
    galleries: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)  # name → rows
    timelines: tuple[Timeline, ...] = ()


class RewardModel:
    """Base of all reward models. What a model does not need keeps its default."""

    name: ClassVar[str] = ""  # section of its metrics; by default the class's name in small letters
    Options: ClassVar[type[Options]] = Options
    # Option values that go together: preset → values, laid over the defaults.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    metrics_shown: ClassVar[tuple[str, ...]] = ()  # of `update`, in the progress line
    # It pays what is new minus the environment's own reward: only one model can.
    replaces_reward: ClassVar[bool] = False

    @classmethod
    def own_stream(cls, options: Any) -> float | None:
        """The gamma of a value stream of its own for what it pays, which episodes do not end; None:
        what it pays is added to the environment's reward. WholeEpisodePPO and ConSpec only.
        """
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()

    def __init__(self, options: Any, setting: Setting) -> None:
        self.options = options
        self.setting = setting

    def check(self) -> None:
        """Raise an `OptionError` where the options do not fit the setting. Runs before Ray starts,
        so it must cost nothing: build networks on torch's meta device.
        """

    @property
    def num_parameters(self) -> int:
        """Of the learner's side; large models may use every core while they learn."""
        return 0

    # --- on the driver ------------------------------------------------------------------------

    def choose(
        self, summaries: Sequence[Summary], rng: np.random.Generator
    ) -> list[tuple[int, Any]]:
        """(position, label) of the episodes to learn from. Labels come back in `update`; what they
        mean is the model's own business.
        """
        return [(i, None) for i in range(len(summaries))]

    # --- on every learner, with equal contents --------------------------------------------------

    def update(self, episodes: Sequence[tuple[Any, Episode]]) -> dict[str, Any]:
        """Learn from (label, episode) pairs; returns metrics, which may be nested.

        Episodes are the caller's: keep `episode.kept()`, not the episode.
        """
        raise NotImplementedError

    def snapshot(self) -> Any:
        """What `load` needs on a worker; it travels through Ray's object store."""
        raise NotImplementedError

    def get_state(self) -> dict[str, Any]:
        """Everything needed to continue exactly, sharing nothing with the model."""
        raise NotImplementedError

    def set_state(self, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def hints(self) -> list[str]:
        """Why it does not pay yet, and what would help: one line each, none when all is well.

        A line is shown when it is new: counts in it are to be `milestone`s.
        """
        return []

    # --- on every rollout worker ----------------------------------------------------------------

    def load(self, snapshot: Any) -> None:
        """Pay by this snapshot from now on."""
        raise NotImplementedError

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """Intrinsic reward of every step: one array [T] per episode. Also before any `load`."""
        raise NotImplementedError

    # --- in progress and reports ------------------------------------------------------------------

    @classmethod
    def cells(cls, metrics: Mapping[str, Any]) -> dict[str, str]:
        """What the progress line shows of the metrics: title → text."""
        shown = {name: metrics.get(name) for name in cls.metrics_shown}
        return {n: f"{v:.4g}" for n, v in shown.items() if isinstance(v, (int, float))}

    @classmethod
    def describe(cls, state: dict[str, Any]) -> Description:
        """What was found, from the state in a checkpoint: no environment and no Ray is needed."""
        return Description()

    @classmethod
    def sizes(cls, options: Any) -> dict[str, Any]:
        """Options that the shapes of the weights depend on: equal in runs that share a state."""
        return {}
