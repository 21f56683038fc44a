"""Configuration of the Decision Transformer: its recordings, what it is asked for, its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.config_episodes import EpisodesConfig
from rllib_conspec.algorithm.decision_transformer.learner import DecisionTransformerLearner
from rllib_conspec.algorithm.decision_transformer.policy import Context, ContextPolicy
from rllib_conspec.algorithm.decision_transformer.windows import (
    LABELS,
    RETURN,
    recorded_episodes,
    to_go,
)
from rllib_conspec.algorithm.settings import check_whole_number
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.recordings import Origin

# The paper's: on keys, and on Atari. `width` is the network's encoder_dim.
KEYS = {"context": 20, "blocks": 3, "heads": 1, "lr": 2e-4, "grad_clip": 0.25, "width": 128}
ATARI = {"context": 30, "blocks": 6, "heads": 8, "lr": 6e-4, "grad_clip": 1.0, "width": 128}


@dataclass(frozen=True)
class Recorded:
    """What the recordings hold."""

    episodes: int
    best: float  # the largest label of a first step
    scale: float  # the largest size of any label


class DecisionTransformerConfig(EpisodesConfig):
    """Configuration of the Decision Transformer.

    >>> config = (
    ...     DecisionTransformerConfig()
    ...     .environment("rllib_conspec:MultiKeyToDoor-v0", env_config={"keys": 1})
    ...     .decision_transformer(recordings="keys1.rec")
    ... )
    """

    def __init__(self, algo_class: type | None = None) -> None:
        if algo_class is None:
            from rllib_conspec.algorithm.decision_transformer.algorithm import DecisionTransformer

            algo_class = DecisionTransformer
        super().__init__(algo_class=algo_class)
        self.recordings: str | list[str] | None = None
        self.labels: str = RETURN
        self.target_return: float | None = None
        self.dropout: float = 0.1
        self.weight_decay: float = 1e-4
        self.windows_per_batch: int = 64
        self.updates_per_iteration: int = 500
        self.num_env_runners = 0
        self.num_envs_per_env_runner = 1
        self._recorded: Recorded | None = None  # what looking at the recordings found
        self._read: tuple | None = None  # what it was found for
        self._use_preset(self.preset)

    @override(EpisodesConfig)
    def _use_preset(self, preset: str) -> None:
        super()._use_preset(preset)
        values = dict(ATARI if preset == "atari" else KEYS)
        self._model_config = {**(self._model_config or {}), "encoder_dim": values.pop("width")}
        for name, value in values.items():
            setattr(self, name, value)

    def decision_transformer(
        self,
        *,
        recordings: str | list[str] = NotProvided,
        labels: str = NotProvided,
        target_return: float | None = NotProvided,
        context: int = NotProvided,
        blocks: int = NotProvided,
        heads: int = NotProvided,
        dropout: float = NotProvided,
        weight_decay: float = NotProvided,
        windows_per_batch: int = NotProvided,
        updates_per_iteration: int = NotProvided,
    ) -> DecisionTransformerConfig:
        """Set what a Decision Transformer learns from, what it is asked for, and its sizes.

        Args:
            recordings: File of recorded episodes (`rllib record`), or a list of them.
            labels: `return` (what is still to come at a step) or `uniform` (1 at all steps of a
                success, 0 at those of a failure, whatever they were paid).
            target_return: What is asked for when it plays. By default the best of the recordings.
            context: Steps that it sees, K.
            blocks: Of the transformer.
            heads: Of every block's attention. They divide the width, which is `encoder_dim`.
            dropout: While it learns, in every block.
            weight_decay: AdamW's.
            windows_per_batch: Windows of K steps in a gradient step.
            updates_per_iteration: Gradient steps between two measurements. A measurement is
                `episodes_per_batch` episodes.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        for name, value in given.items():
            if value is not NotProvided:
                setattr(self, name, value)
        return self

    @override(EpisodesConfig)
    def validate(self) -> None:
        for name in ("context", "blocks", "heads", "windows_per_batch", "updates_per_iteration"):
            check_whole_number(name, getattr(self, name), least=1)
        self._check_values()
        self.episodes_per_minibatch = min(self.episodes_per_minibatch, self.episodes_per_batch)
        super().validate()
        if not isinstance(self.facts.action_space, spaces.Discrete):
            raise OptionError("env", "has continuous actions; this one needs Discrete actions.")
        self._read_recordings()

    def _check_values(self) -> None:
        if self.labels not in LABELS:
            raise OptionError(
                "labels",
                f"must be {' or '.join(LABELS)}, not {self.labels!r}."
                + did_you_mean(str(self.labels), LABELS),
            )
        if not 0 <= self.dropout < 1:
            raise OptionError("dropout", f"must be from 0 to below 1, not {self.dropout!r}.")
        width = self._model_config["encoder_dim"]
        if width % self.heads:
            raise OptionError("heads", f"{self.heads} do not divide encoder_dim, which is {width}.")
        if self.reward_models:
            raise OptionError(
                "reward_models",
                "it learns from recordings: there is nobody to pay; leave them out.",
            )
        if self.num_envs_per_env_runner != 1 and not self.in_evaluation:
            raise OptionError(
                "num_envs_per_env_runner",
                "must be 1: of several at once the short episodes would be counted more often. "
                "Use num_env_runners.",
            )

    @property
    def files(self) -> list[str]:
        """Full names: processes of one run work in several directories."""
        named = [self.recordings] if isinstance(self.recordings, str) else self.recordings or []
        return [str(Path(name).expanduser().absolute()) for name in named]

    def _read_recordings(self) -> None:
        """See whether the recordings fit, and what can be asked for."""
        self.recordings = self.files
        asked = (tuple(self.recordings), self.labels, self._looked_at)
        if self._read == asked:
            return
        facts = self.facts
        wanted = Origin.of(facts.plays, facts.version, facts.observation_space, facts.action_space)
        episodes = recorded_episodes(self.recordings, wanted)
        found = [to_go(packed.rest, self.labels) for packed in episodes]
        scale = max(float(abs(labels).max()) for labels in found)
        best = max(float(labels[0]) for labels in found)
        self._recorded, self._read = Recorded(len(episodes), best, scale or 1.0), asked

    @property
    def target(self) -> float:
        """What is asked for."""
        return self._recorded.best if self.target_return is None else self.target_return

    @property
    def network_sizes(self) -> dict[str, Any]:
        """Settings without which a checkpoint's weights mean nothing."""
        return {"blocks": self.blocks, "heads": self.heads}

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=ContextPolicy)

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type:
        return DecisionTransformerLearner

    @property
    @override(EpisodesConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("context", "blocks", "heads", "dropout")}
        own |= {
            "longest": self.facts.max_episode_steps if self.facts else 1,
            "scale": self._recorded.scale if self._recorded else 1.0,
        }
        return super()._model_config_auto_includes | own

    @override(AlgorithmConfig)
    def build_env_to_module_connector(self, *args: Any, **kwargs: Any) -> Any:
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        pipeline.prepend(
            Context(context=self.context, target=self.target, lessens=self.labels == RETURN)
        )
        return pipeline
