"""The rollout worker: plays episodes, adds intrinsic rewards, keeps finished episodes for the
learner.
"""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils import force_list
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.rollout import DROPPED, Player, can_play
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.success import EpisodeSummary, FinishedEpisode, sparse_success

COMPONENT_SNAPSHOT = "reward_snapshot"


@dataclass
class Report:
    """What a worker tells the driver about the episodes that it finished since the last report."""

    summaries: list[EpisodeSummary] = field(default_factory=list)
    episodes: list[Any] = field(default_factory=list)  # StoredEpisode, or a reference to one
    intrinsic_returns: list[float] = field(default_factory=list)
    version: int = 0  # of the snapshot that paid
    dropped: int = 0  # episodes lost because their environment broke down
    sample_seconds: float = 0.0
    score_seconds: float = 0.0


class EpisodeRunner(SingleAgentEnvRunner):
    """A single-agent runner for whole-episode batches and reward models.

    The rewards of returned episodes are extrinsic + intrinsic. RLlib's episode metrics are computed
    from the untouched originals, so that every return people see is the environment's own.
    """

    @override(SingleAgentEnvRunner)
    def __init__(self, *, config: AlgorithmConfig, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        self.failure: BaseException | None = None
        self.position = 0  # where training stands, for seeds
        self._report = Report()
        self._pieces: dict[str, list[tuple[SingleAgentEpisode, StoredEpisode, float]]] = {}
        model = config.get_reward_model()
        self.scorer = None
        self._success = sparse_success
        if model is not None:
            self.scorer = model.scorer(self.get_spaces()[INPUT_ENV_SINGLE_SPACES][0].shape)
            self._success = model.success_function()

    @override(SingleAgentEnvRunner)
    def apply(self, func: Callable, *args: Any, **kwargs: Any) -> Any:
        """Run `func` on this worker; an exception is kept for the driver and raised.

        RLlib's own version logs it, sleeps and exits, after which training goes on with nothing
        sampled.
        """
        try:
            return func(self, *args, **kwargs)
        except Exception as error:
            error.add_note(f"in rollout worker {self.worker_index}:\n{traceback.format_exc()}")
            self.failure = error
            raise

    @override(SingleAgentEnvRunner)
    def sample(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        if self.config.in_evaluation:
            return self._without_dropped(super().sample(**kwargs))
        start = time.perf_counter()
        whole = self.config.episodes_per_batch is not None and not kwargs
        episodes = self._sample_whole_episodes() if whole else self._sample_as_rllib(**kwargs)
        sampled = time.perf_counter()
        episodes = self._pay(episodes)
        self._report.sample_seconds += sampled - start
        self._report.score_seconds += time.perf_counter() - sampled
        return episodes

    def sample_at(self, position: int) -> tuple[list[SingleAgentEpisode], dict[str, Any]]:
        """Episodes and metrics of the batch that begins after `position` environment steps."""
        self.position = position
        return self.sample(), self.get_metrics()

    # --- whole episodes -----------------------------------------------------------------------

    def _sample_whole_episodes(self) -> list[SingleAgentEpisode]:
        """This worker's share of the batch's episodes."""
        count = self._share()
        if count == 0:
            return []
        if not self._plays_quickly():
            return self._sample_as_rllib(num_episodes=count)
        seed = derived_seed(self.config.seed, "rollout", self.worker_index, self.position)
        player = Player(
            self.env.env,  # below the wrapper that turns infos into one dict per environment
            self.module,
            normalize=self.config.normalize_actions,
            clip=self.config.clip_actions,
        )
        episodes = player.play(count, explore=self.config.explore, seed=seed)
        self._report.dropped += player.dropped
        steps = sum(len(e) for e in episodes)
        self._done_episodes_for_metrics.extend(episodes)
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=steps)
        self._increase_sampled_metrics(steps, len(episodes))
        return episodes

    def _sample_as_rllib(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        return self._without_dropped(super().sample(**kwargs))

    def _without_dropped(self, episodes: list[SingleAgentEpisode]) -> list[SingleAgentEpisode]:
        """Take out the ends of episodes that were cut short by a broken environment, also from
        RLlib's metrics. Pieces of them that were sampled earlier have been learned from already.
        """
        lost = {e.id_ for e in episodes if e.is_done and e.get_infos(-1).get(DROPPED)}
        if not lost:
            return episodes
        self._report.dropped += len(lost)
        for id_ in lost:
            self._pieces.pop(id_, None)
        self._done_episodes_for_metrics = [
            e for e in self._done_episodes_for_metrics if e.id_ not in lost
        ]
        return [e for e in episodes if e.id_ not in lost]

    def _share(self) -> int:
        total, workers = self.config.episodes_per_batch, self.config.num_env_runners
        if workers == 0:
            return total
        return total // workers + (self.worker_index <= total % workers)

    def _plays_quickly(self) -> bool:
        """Users' connectors and callbacks are theirs to have: RLlib's loop calls them."""
        config = self.config
        own_callbacks = any(
            c is not RLlibCallback for c in force_list(config.callbacks_class)
        ) or any(value for name, value in vars(config).items() if name.startswith("callbacks_on_"))
        own_connectors = (
            config._env_to_module_connector is not None
            or config._module_to_env_connector is not None
        )
        return not own_callbacks and not own_connectors and can_play(self.env.env, self.module)

    # --- intrinsic rewards --------------------------------------------------------------------

    def _pay(self, episodes: list[SingleAgentEpisode]) -> list[SingleAgentEpisode]:
        """The same episodes with intrinsic rewards added; finished ones go into the report."""
        stored = [StoredEpisode.of(e.get_observations()[1:], False) for e in episodes]
        intrinsic = (
            self.scorer.reward(stored)
            if self.scorer is not None
            else [np.zeros(len(e), dtype=np.float32) for e in episodes]
        )
        self._report.version = self.scorer.version if self.scorer is not None else 0
        for episode, piece, extra in zip(episodes, stored, intrinsic, strict=True):
            self._collect(episode, piece, float(extra.sum()))
        return [_with_extra_reward(e, r) for e, r in zip(episodes, intrinsic, strict=True)]

    def _collect(self, episode: SingleAgentEpisode, piece: StoredEpisode, paid: float) -> None:
        """Join the pieces of an episode; when it is finished, sum it up for the driver."""
        pieces = self._pieces.setdefault(episode.id_, [])
        pieces.append((episode, piece, paid))
        if not episode.is_done:
            return
        del self._pieces[episode.id_]
        finished = FinishedEpisode(
            observations=np.concatenate([p.frames for _, p, _ in pieces]),
            actions=np.concatenate([np.asarray(e.get_actions()) for e, _, _ in pieces]),
            rewards=np.concatenate([np.asarray(e.get_rewards()) for e, _, _ in pieces]),
            info=episode.get_infos(-1),
        )
        success = self._success(finished)
        self._report.summaries.append(
            EpisodeSummary(float(finished.rewards.sum()), len(finished.rewards), success)
        )
        self._report.intrinsic_returns.append(sum(paid for _, _, paid in pieces))
        if self.scorer is not None:
            whole = piece if len(pieces) == 1 else StoredEpisode.of(finished.observations, False)
            whole = replace(whole, events=self._events([e for e, _, _ in pieces]))
            # A local worker's learner is in the same process: nothing to transfer.
            self._report.episodes.append(ray.put(whole) if self.worker_index else whole)

    def _events(self, pieces: list[SingleAgentEpisode]) -> tuple[tuple[int, str], ...]:
        """(step, name) of the infos that the environment declares as `critical_events`."""
        names = getattr(self.env.unwrapped, "critical_events", ())
        infos = [info for piece in pieces for info in piece.get_infos()[1:]] if names else []
        return tuple(
            (t, f"{name} {int(info[name])}")
            for t, info in enumerate(infos)
            for name in names
            if info.get(name)
        )

    def take_report(self) -> Report:
        """What happened since the last report. The references in it keep the episodes alive."""
        report, self._report = self._report, Report()
        return report

    # --- snapshots ----------------------------------------------------------------------------

    @override(SingleAgentEnvRunner)
    def get_state(self, components=None, *, not_components=None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        # A restarted worker is synced from the local one, and must score as the others do.
        if self.scorer is not None and self._check_component(
            COMPONENT_SNAPSHOT, components, not_components
        ):
            state[COMPONENT_SNAPSHOT] = self.scorer.snapshot
        return state

    @override(SingleAgentEnvRunner)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.scorer is not None and COMPONENT_SNAPSHOT in state:
            self.scorer.load(state[COMPONENT_SNAPSHOT])


def _with_extra_reward(episode: SingleAgentEpisode, extra: np.ndarray) -> SingleAgentEpisode:
    """A shallow copy of the episode, with `extra` [T] added to its rewards."""
    paid = copy.copy(episode)
    rewards = np.asarray(episode.rewards.data, dtype=np.float32).copy()
    rewards[episode.rewards.lookback :] += extra
    paid.rewards = InfiniteLookbackBuffer(
        rewards if episode.is_numpy else list(rewards), lookback=episode.rewards.lookback
    )
    return paid
