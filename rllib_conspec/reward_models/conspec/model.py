"""ConSpec as a reward model: which episodes it learns from, and its two sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from rllib_conspec.episodes import Episode, PackedEpisode, Summary
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.recordings import Origin, load
from rllib_conspec.reward_models.base import Description, RewardModel
from rllib_conspec.reward_models.conspec.hints import hints
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.options import PRESETS, ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.scorer import ConSpecScorer, Snapshot

# Options that the shapes of the weights depend on.
SIZES = ("num_prototypes", "form", "encoder", "encoder_dim", "projection_dim")


class ConSpecModel(RewardModel):
    """Pays for steps that match a prototype of a critical step."""

    name = "conspec"
    Options = ConSpecOptions
    presets = PRESETS

    @cached_property
    def learner(self) -> ConSpecLearner:
        s = self.setting
        learner = ConSpecLearner(self.options, s.shape, s.device, s.seed, **self._view)
        learner.start_from(self._demonstrations())
        return learner

    def _demonstrations(self) -> tuple[PackedEpisode, ...]:
        """The recorded episodes that S starts from; an OptionError says why they cannot be used."""
        o, s = self.options, self.setting
        if o.demonstrations is None:
            return ()
        try:
            found = load(o.demonstrations, o.num_demonstrations)
        except UserError as error:
            raise OptionError("demonstrations", str(error)) from error
        wanted = Origin.of(s.plays, s.version, s.observation_space, s.action_space)
        difference = found.origin.difference(wanted)
        if difference:
            raise OptionError("demonstrations", f"{o.demonstrations} {difference}.")
        if len(found.episodes) > o.memory_size:
            raise OptionError(
                "demonstrations",
                f"has {len(found.episodes)} episodes, and memory_size is {o.memory_size}: set "
                f"num_demonstrations to that or less.",
            )
        return found.episodes

    @cached_property
    def scorer(self) -> ConSpecScorer:
        return ConSpecScorer(self.options, self.setting.shape, self.setting.gamma, **self._view)

    @property
    def _view(self) -> dict[str, Any]:
        """How observations are to be read."""
        s = self.setting
        return {
            "observation_range": s.observation_range,
            "channels": s.channels,
            "normalize": s.normalize,
        }

    def check(self) -> None:
        best, batch = self.options.max_new_successes, self.setting.best_of
        if batch is not None and best >= batch:
            raise OptionError(
                "max_new_successes",
                f"is {best}: with success top_k, all {batch} episodes of a batch would be "
                f"successes, and none a failure. Set it to {max(1, batch // 4)}.",
            )
        self._demonstrations()
        if self.options.recolour and len(self.setting.shape) != 3:
            raise OptionError("recolour", "is for pictures, and these observations are vectors.")
        with torch.device("meta"):
            Prototypes(self.options, self.setting.shape, **self._view)

    @cached_property
    def num_parameters(self) -> int:
        with torch.device("meta"):
            model = Prototypes(self.options, self.setting.shape, **self._view)
        return sum(p.numel() for p in model.parameters())

    # --- on the driver ------------------------------------------------------------------------

    def choose(
        self, summaries: Sequence[Summary], rng: np.random.Generator
    ) -> list[tuple[int, bool]]:
        """(position, success) of the episodes that the memories take, in batch order.

        At most `max_new_successes` successes, so that S changes slowly, and as many failures as F
        holds: more would push each other out at once. Where there are more, they are drawn at
        random.
        """
        success = self._judge(summaries)
        most, kept = self.options.max_new_successes, self.options.memory_size
        won, lost = np.flatnonzero(success), np.flatnonzero(~success)
        if len(won) > most:
            won = rng.choice(won, most, replace=False)
        if len(lost) > kept:
            lost = rng.choice(lost, kept, replace=False)
        return [(int(i), bool(success[i])) for i in np.sort(np.concatenate([won, lost]))]

    def _judge(self, summaries: Sequence[Summary]) -> np.ndarray:
        """Success of every episode; where it is relative, the best of the batch succeed."""
        if all(s.success is not None for s in summaries):
            return np.array([s.success for s in summaries], dtype=bool)
        returns = np.array([s.extrinsic_return for s in summaries])
        best = np.argsort(-returns, kind="stable")[: self.options.max_new_successes]
        return np.isin(np.arange(len(summaries)), best)

    # --- on the learners ----------------------------------------------------------------------

    def update(self, episodes: Sequence[tuple[bool, Episode]]) -> dict[str, Any]:
        self.learner.add(
            [e for success, e in episodes if success], [e for success, e in episodes if not success]
        )
        return self.learner.step()

    def hints(self) -> list[str]:
        return hints(self.learner)

    def snapshot(self) -> Snapshot:
        return self.learner.snapshot()

    def get_state(self) -> dict[str, Any]:
        return self.learner.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.learner.set_state(state)

    # --- on the workers -----------------------------------------------------------------------

    def load(self, snapshot: Snapshot) -> None:
        self.scorer.load(snapshot)

    def reward(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        return self.scorer.reward(episodes)

    # --- in progress and reports --------------------------------------------------------------

    @classmethod
    def cells(cls, metrics: Mapping[str, Any]) -> dict[str, str]:
        if not {"successes", "frozen", "prototypes"} <= metrics.keys():
            return {}
        return {
            "in memory": f"{metrics['successes']:.0f}",
            "frozen": f"{metrics['frozen']:.0f}/{metrics['prototypes']:.0f}",
        }

    @classmethod
    def describe(cls, state: dict[str, Any]) -> Description:
        from rllib_conspec.reward_models.conspec.found import describe

        return describe(ConSpecLearner.from_state(state))

    @classmethod
    def sizes(cls, options: ConSpecOptions) -> dict[str, Any]:
        return {name: getattr(options, name) for name in SIZES}
