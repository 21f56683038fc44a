"""Recorded episodes as a Decision Transformer learns from them: windows of K steps, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.recordings import Origin, load

RETURN, UNIFORM = "return", "uniform"
LABELS = (RETURN, UNIFORM)

# Columns of a batch, besides observations: each [B, K], but for `length`, which is [B].
RETURNS, ACTIONS, STEPS, LENGTH = "to_go", "taken", "step", "length"


def recorded_episodes(files: Sequence[str], wanted: Origin | None = None) -> list[PackedEpisode]:
    """The episodes of all files; an OptionError names the file that cannot be learned from."""
    if not files:
        raise OptionError(
            "recordings",
            "a Decision Transformer learns from recorded episodes: name a file of them, or "
            "several. `rllib record FILE --all -f …` makes one.",
        )
    episodes: list[PackedEpisode] = []
    for file in files:
        try:
            found = load(file)
        except UserError as error:
            raise OptionError("recordings", str(error)) from error
        if wanted is not None and (difference := found.origin.difference(wanted)):
            raise OptionError("recordings", f"{file} {difference}.")
        episodes += found.episodes
    if not episodes:
        raise OptionError("recordings", f"{', '.join(files)}: no episode.")
    return episodes


def to_go(episode: Episode, labels: str) -> np.ndarray:
    """float32 [T]: what is still to come at each step. With `uniform` labels 1 for all steps of a
    success and 0 for those of a failure, whatever they were paid.
    """
    if labels == UNIFORM:
        if episode.success is None:
            raise OptionError(
                "labels", "uniform needs to know which of the recorded episodes succeeded."
            )
        return np.full(len(episode), float(episode.success), np.float32)
    # From the end on: the sum of one reward and zeros is that reward, to the digit.
    return np.cumsum(episode.rewards[::-1], dtype=np.float64)[::-1].astype(np.float32)


class Windows:
    """Draws windows, each step of all episodes as likely as any other to be the first of one."""

    def __init__(self, episodes: Sequence[Episode], context: int, labels: str) -> None:
        self.context = context
        self._episodes = list(episodes)
        self._to_go = [to_go(episode, labels) for episode in self._episodes]
        self._ends = np.cumsum([len(episode) for episode in self._episodes])

    def draw(self, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        places = rng.integers(self._ends[-1], size=count)
        which = np.searchsorted(self._ends, places, side="right")
        begins = places - np.append(0, self._ends)[which]
        windows = [self._window(i, int(t)) for i, t in zip(which, begins, strict=True)]
        return {name: np.stack([w[name] for w in windows]) for name in windows[0]}

    def _window(self, index: int, begin: int) -> dict[str, Any]:
        episode = self._episodes[index]
        end = min(begin + self.context, len(episode))
        return window(
            self.context,
            episode.observations[begin:end],
            episode.actions[begin:end],
            self._to_go[index][begin:end],
            begin,
        )


def window(
    context: int, observations: np.ndarray, actions: np.ndarray, returns: np.ndarray, begin: int
) -> dict[str, np.ndarray]:
    """Up to `context` steps from step `begin` on, filled up with zeros at their end; actions may be
    one fewer than observations.
    """
    length = len(observations)
    return {
        "obs": _filled(observations, context),
        RETURNS: _filled(np.asarray(returns, np.float32), context),
        ACTIONS: _filled(np.asarray(actions, np.int64), context),
        STEPS: _filled(np.arange(begin, begin + length), context),
        LENGTH: np.int64(length),
    }


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    whole = np.zeros((size, *values.shape[1:]), values.dtype)
    whole[: len(values)] = values
    return whole
