"""Pay of episodes that a replay buffer holds: DQN, SAC and what derives from them.

An episode is paid when it is played. The reward models go on learning, and what they would pay for
it later may be something else: many pay nothing at first. So an episode is paid again when it is
sampled and its pay is too old (`max_pay_age`); the buffer itself stays RLlib's.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.replay_buffers.episode_replay_buffer import EpisodeReplayBuffer

from rllib_conspec.algorithm.paying import PAID_BY, as_played, pay_again
from rllib_conspec.algorithm.report import joined
from rllib_conspec.reward_models.together import Together, pay_alike
from rllib_conspec.success import success_function


class Replayed:
    """Pays stored episodes again, by the snapshot that was loaded last."""

    def __init__(self, model: Together, config: AlgorithmConfig) -> None:
        self._model = model
        self._most = config.max_pay_age
        self._scale = config.reward_scale
        self._success = success_function(config.success)
        self._snapshot: Any = None
        self._same_since = 0  # the first version that pays as the newest does
        self._seconds = 0.0

    def watch(self, buffer: EpisodeReplayBuffer) -> None:
        """Pay for what is sampled from this buffer."""
        buffer.episodes = _Watched(buffer.episodes, self.renew)

    def load(self, snapshot: Any) -> None:
        if not pay_alike(snapshot, self._snapshot):
            self._same_since = snapshot["version"]
        self._model.load(snapshot)
        self._snapshot = snapshot

    def renew(self, episode: SingleAgentEpisode) -> None:
        """Pay again if the pay is too old. Only whole episodes can be paid: of one whose last
        pieces have not come, or whose first were pushed out, the pay stays as it is.
        """
        paid_by = episode.custom_data.get(PAID_BY)
        if paid_by is None or not self._too_old(paid_by):
            return
        if not episode.is_done or episode.t_started > 0:
            return
        start = time.perf_counter()
        whole = joined([as_played(episode)], self._success, ())
        (intrinsic,) = self._model.reward([whole])
        pay_again(episode, self._scale, intrinsic, self._model.version)
        self._seconds += time.perf_counter() - start

    def _too_old(self, paid_by: int) -> bool:
        return paid_by < self._same_since and self._model.version - paid_by >= self._most

    def take_seconds(self) -> float:
        """Spent since this was asked last."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


class _Watched(deque):
    """A buffer's episodes, each shown to somebody before it is looked at."""

    def __init__(
        self,
        episodes: Iterable[SingleAgentEpisode],
        show: Callable[[SingleAgentEpisode], None],
    ) -> None:
        super().__init__(episodes)
        self._show = show

    def __getitem__(self, index: int) -> SingleAgentEpisode:
        episode = super().__getitem__(index)
        self._show(episode)
        return episode
