"""The rollout worker: plays episodes, adds intrinsic rewards, and tells the driver about both."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import ray
from gymnasium.wrappers.vector import DictInfoToList
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.annotations import override

from rllib_conspec import auxiliary, environments
from rllib_conspec.algorithm.paying import with_reward
from rllib_conspec.algorithm.report import Pointer, Report, Share, joined
from rllib_conspec.algorithm.rollout import DROPPED, Player, can_play
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.algorithm.stock import Part
from rllib_conspec.episodes import Episode
from rllib_conspec.success import success_function

COMPONENT_SNAPSHOT = "reward_snapshot"
REPORT = "report"
NOTHING_AHEAD = (None, None)
ENDLESS = 100_000  # steps of an episode after which nobody expects its end


class News(NamedTuple):
    """Something that a worker plays by: said with every request, read when its number is new."""

    number: int
    thing: Any  # or a reference to it


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
        self._heard: dict[str, int] = {}  # numbers of the news
        self._ahead: tuple[Any, Any] = NOTHING_AHEAD  # what was asked for, and what was played
        self._report = Report()
        self._pieces: dict[str, list[SingleAgentEpisode]] = {}  # of episodes that go on
        self._paid: list[SingleAgentEpisode] = []  # pieces of finished ones, not yet given out
        self._success = success_function(config.success)
        # The driver's own runner has no environment where remote ones play.
        self._critical_events = environments.critical_events(self.env.env) if self.env else ()
        self.reward_model = config.get_reward_model(*self.get_spaces()[INPUT_ENV_SINGLE_SPACES])

    @override(SingleAgentEnvRunner)
    def make_env(self) -> None:
        """RLlib's, but with our environments where episodes are whole: a real time limit, seeded
        resets, one vector of observations.
        """
        if self.config.facts is None:
            environments.find(self.config.env)  # registers it in this process
            super().make_env()
            return
        if self.env is not None:
            self.env.close()
        config = self.config
        context = EnvContext(
            config.env_config,
            worker_index=self.worker_index,
            num_workers=self.num_workers,
            remote=config.remote_worker_envs,
        )
        self.env = DictInfoToList(
            environments.make_vector(
                config.env,
                context,
                config.num_envs_per_env_runner,
                config.facts,
                observation_key=config.observation_key,
                mode=config.vectorize_mode,
            )
        )
        self.num_envs = self.env.num_envs
        self._needs_initial_reset = True
        make_callback(
            "on_environment_created",
            callbacks_objects=self._callbacks,
            callbacks_functions=config.callbacks_on_environment_created,
            kwargs={
                "env_runner": self,
                "metrics_logger": self.metrics,
                "env": self.env.unwrapped,
                "env_context": context,
            },
        )

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
        if kwargs or self.config.episodes_per_batch is not None:
            return self._play_and_report(**kwargs).episodes
        return self._sample_pieces()

    @override(SingleAgentEnvRunner)
    def sample_get_state_and_metrics(self) -> tuple[ray.ObjectRef, dict[str, Any], dict[str, Any]]:
        """RLlib's, for asynchronous algorithms. The report comes along; the snapshot, which the
        driver knows, does not.
        """
        episodes = self.sample()
        state = self.get_state(not_components=[COMPONENT_RL_MODULE, COMPONENT_SNAPSHOT])
        return ray.put(episodes), state | {REPORT: self.take_report()}, self.get_metrics()

    def _sample_pieces(self) -> list[SingleAgentEpisode]:
        """About as many steps as were played, in pieces whose episodes have ended; never nothing,
        which no algorithm of RLlib can learn from.

        A long episode becomes free as a whole, and is given out over the next calls, or batches
        would have very different sizes.
        """
        waited = 0
        while True:
            played = self._play_and_report()
            self._paid += played.episodes
            if self._paid:
                break
            waited += played.steps
            if waited > ENDLESS * self.num_envs:
                raise RuntimeError(
                    f"no episode ended within {ENDLESS} steps, and intrinsic rewards are those of "
                    "whole episodes: give the environment a time limit (gymnasium's TimeLimit)."
                )
        ends = np.cumsum([len(piece) for piece in self._paid])
        count = int(np.searchsorted(ends, max(1, played.steps))) + 1
        given, self._paid = self._paid[:count], self._paid[count:]
        return given

    def _play_and_report(self, **kwargs: Any) -> _Played:
        played = self._play(**kwargs)
        if self.reward_model is not None:
            # A local worker's learner is in the same process: nothing to transfer.
            put = ray.put if self.worker_index else lambda share: share
            shares = [put(Share([], [e])) for _, e in played.whole]
            self._report.episodes += [Pointer(share, 0) for share in shares]
        return played

    def sample_shares(
        self, position: int, news: Mapping[str, News], batches: int = 1
    ) -> list[Part]:
        """This worker's part of batches of whole episodes, in one request: what is new comes in,
        and out go, for every batch, the shares of the learners (or references to them), RLlib's
        metrics and the report.

        `position` says how many environment steps training stands at.
        """
        self.position = position
        self.hear(news)
        return [self._part(played) for played in self._play_batches(batches)]

    def _part(self, played: _Played) -> Part:
        count = max(1, self.config.num_learners)
        pay = self.reward_model is not None
        shares = [
            Share(played.episodes[i::count], [e for _, e in played.whole[i::count]] if pay else [])
            for i in range(count)
        ]
        if self.worker_index:
            shares = [ray.put(share) for share in shares]
        if pay:
            self._report.episodes = [
                Pointer(shares[i % count], i // count) for i in range(len(played.whole))
            ]
        return shares, self.get_metrics(), self.take_report()

    def hear(self, news: Mapping[str, News]) -> None:
        """Take in newer `weights` of the policy and a newer `snapshot` of the reward models."""
        for name, take in (("weights", self._take_weights), ("snapshot", self.load)):
            if name in news and news[name].number != self._heard.get(name):
                thing = news[name].thing
                take(ray.get(thing) if isinstance(thing, ray.ObjectRef) else thing)
                self._heard[name] = news[name].number

    def _take_weights(self, state: dict[str, Any]) -> None:
        self._weights_seq_no = 0  # or RLlib would not take the older weights of a checkpoint
        super().set_state(state)

    # --- playing ------------------------------------------------------------------------------

    def _play(self, **kwargs: Any) -> _Played:
        """Play and pay; the numbers of the report are kept up."""
        if self.config.episodes_per_batch is not None and not kwargs:
            (played,) = self._play_batches(1)
            return played
        start = time.perf_counter()
        episodes = self._sample_as_rllib(**kwargs)
        return self._pay_and_note(episodes, time.perf_counter() - start)

    def play_ahead(self, position: int, news: Mapping[str, News], batches: int) -> None:
        """Play what `sample_shares` is going to be asked for: the policy's weights are known while
        the reward models still learn, and only pay has to wait for them. What is asked for in the
        end says whether it is of any use.
        """
        self.hear(news)
        self.position = position
        if self._share() and self._plays_quickly():
            self._ahead = self._asked(batches), self._played(batches)

    def _asked(self, batches: int) -> tuple[Any, ...]:
        """All that what is played depends on."""
        return self.position, batches, self._heard.get("weights")

    def _play_batches(self, count: int) -> Iterator[_Played]:
        """This worker's share of `count` batches; of one where RLlib's loop plays.

        The report and RLlib's metrics are a batch's own if they are taken before the next one.
        """
        quick = self._plays_quickly()
        (asked, played), self._ahead = self._ahead, NOTHING_AHEAD
        batches, seconds = played if asked == self._asked(count) else self._played(count)
        for episodes in batches:
            if quick and episodes:
                self._count(episodes)
            yield self._pay_and_note(episodes, seconds / len(batches))

    def _played(self, count: int) -> tuple[list[list[SingleAgentEpisode]], float]:
        """This worker's share of `count` batches, unpaid, and the seconds that it took."""
        start, share = time.perf_counter(), self._share()
        if share == 0:
            batches = [[] for _ in range(count)]
        elif self._plays_quickly():
            episodes = self._play_quickly(count * share)
            # In the order in which they were started: no batch gets more of the short ones.
            batches = [episodes[i : i + share] for i in range(0, len(episodes), share)]
        else:
            batches = [self._sample_as_rllib(num_episodes=share)]
        return batches, time.perf_counter() - start

    def _pay_and_note(self, episodes: list[SingleAgentEpisode], seconds: float) -> _Played:
        """Pay for episodes that took so long to play."""
        start = time.perf_counter()
        played = self._pay(episodes)
        self._report.any_reward |= any(np.any(e.rewards.data) for e in played.episodes)
        self._report.incidents += self._incidents_of_environment()
        self._report.sample_seconds += seconds
        self._report.score_seconds += time.perf_counter() - start
        return played

    def _incidents_of_environment(self) -> list[str]:
        """What befell an environment that can tell (a Unity player that was lost)."""
        take = getattr(self.env.unwrapped, "take_incidents", None) if self.env else None
        who = f"rollout worker {self.worker_index}: " if self.worker_index else ""
        return [f"{who}{line}" for line in take()] if take else []

    def _play_quickly(self, count: int) -> list[SingleAgentEpisode]:
        seed = derived_seed(self.config.seed, "rollout", self.worker_index, self.position)
        losses = {} if self.config.in_evaluation else getattr(self.config, "auxiliary", {})
        player = Player(
            self.env.env,  # below the wrapper that turns infos into one dict per environment
            self.module,
            longest=self.config.facts.max_episode_steps,
            normalize=self.config.normalize_actions,
            clip=self.config.clip_actions,
            epsilon=self.config.epsilon if self.config.explore else 0.0,
            shown=auxiliary.shown_by(losses, self.module.encoder),
        )
        episodes = player.play(count, explore=self.config.explore, seed=seed)
        self._report.dropped += player.dropped
        return episodes

    def _count(self, episodes: list[SingleAgentEpisode]) -> None:
        """RLlib's metrics of episodes that its own loop did not play."""
        steps = sum(len(e) for e in episodes)
        self._done_episodes_for_metrics.extend(episodes)
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=steps)
        self._increase_sampled_metrics(steps, len(episodes))

    def _sample_as_rllib(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        episodes = self._without_dropped(super().sample(**kwargs))
        # Environments may have begun anew (for evaluation, after a step that failed): nobody will
        # end what was played before.
        going_on = {e.id_ for e in (*episodes, *self._ongoing_episodes)}
        self._pieces = {id_: own for id_, own in self._pieces.items() if id_ in going_on}
        return episodes

    def _without_dropped(self, episodes: list[SingleAgentEpisode]) -> list[SingleAgentEpisode]:
        """Take out the ends of episodes that were cut short by a broken environment, also from
        RLlib's metrics, with the pieces of them that are held back.
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
        own = config.own_callbacks or config.own_connectors
        return not own and can_play(self.env.env, self.module)

    # --- intrinsic rewards --------------------------------------------------------------------

    def _pay(self, episodes: list[SingleAgentEpisode]) -> _Played:
        """The same episodes with intrinsic rewards added.

        Rewards are those of a whole episode: where an algorithm takes pieces, they are held back
        until their episode ends, or a window, a potential or "once an episode" would begin anew at
        every cut.
        """
        steps = sum(map(len, episodes))
        whole = [p for episode in episodes if (p := self._finished(episode)) is not None]
        finished = [(p, joined(p, self._success, self._critical_events)) for p in whole]
        self._report.summaries += [episode.summary for _, episode in finished]
        if self.reward_model is None:
            return _Played([self._with_reward(e) for e in episodes], finished, steps)
        given = [episode for _, episode in finished]
        intrinsic = self.reward_model.reward(given)
        apart = self.reward_model.own_reward(given) or [None] * len(given)
        self._report.version = self.reward_model.version
        paid = []
        for (pieces, _), extra, own in zip(finished, intrinsic, apart, strict=True):
            ends = np.cumsum([len(piece) for piece in pieces])[:-1]
            parts = np.split(extra, ends)
            owns = [None] * len(parts) if own is None else np.split(own, ends)
            for piece, part, its_own in zip(pieces, parts, owns, strict=True):
                paid.append(self._with_reward(piece, part, its_own))
            total = float(extra.sum()) + (0.0 if own is None else float(own.sum()))
            self._report.intrinsic_returns.append(total)
            self._report.any_reward |= own is not None and bool(own.any())
        return _Played(paid, finished, steps)

    def _with_reward(
        self,
        episode: SingleAgentEpisode,
        intrinsic: np.ndarray | None = None,
        own: np.ndarray | None = None,
    ) -> SingleAgentEpisode:
        """The episode as the policy learns from it. A shallow copy: metrics are of the original."""
        again = intrinsic is not None and self.config.pays_again
        version = self.reward_model.version if again else None
        return with_reward(episode, self.config.reward_scale, intrinsic, version, own)

    def _finished(self, piece: SingleAgentEpisode) -> list[SingleAgentEpisode] | None:
        """All pieces of the episode that ends with this one; None while it goes on."""
        pieces = self._pieces.setdefault(piece.id_, [])
        pieces.append(piece)
        return self._pieces.pop(piece.id_) if piece.is_done else None

    def take_report(self) -> Report:
        """What happened since the last report. The references in it keep the episodes alive."""
        report, self._report = self._report, Report()
        return report

    # --- snapshots ----------------------------------------------------------------------------

    @override(SingleAgentEnvRunner)
    def get_state(self, components=None, *, not_components=None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        # A restarted worker is synced from the local one, and must score as the others do.
        if self.reward_model is not None and self._check_component(
            COMPONENT_SNAPSHOT, components, not_components
        ):
            state[COMPONENT_SNAPSHOT] = self.snapshot
        return state

    @override(SingleAgentEnvRunner)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.reward_model is not None and state.get(COMPONENT_SNAPSHOT) is not None:
            self.load(state[COMPONENT_SNAPSHOT])

    snapshot: Any = None  # the one loaded last

    def load(self, snapshot: Any) -> None:
        """Pay by this snapshot of the reward models from now on."""
        self.reward_model.load(snapshot)
        self.snapshot = snapshot


@dataclass(frozen=True)
class _Played:
    """Episodes (or pieces) for the RL update, the finished ones among them, each with the pieces
    that it was made of, and how many steps were played.
    """

    episodes: list[SingleAgentEpisode]
    whole: list[tuple[list[SingleAgentEpisode], Episode]]
    steps: int
