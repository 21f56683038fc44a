"""The driver's part: after each RL step, one step of the reward model, and its broadcast.

Order of an iteration (Algorithm 1 of the paper): workers score their episodes with the snapshot
made after the previous iteration; the RL update uses r + r̃; then the reward model learns from the
same episodes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_conspec.algorithm.env_runner import EpisodeRunner, Report
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.retrospection.success import EpisodeSummary

SECONDS = "seconds"
AHEAD = "sample_ahead"  # tags of calls to workers that are not waited for
BROADCAST = "broadcast"
RECENT = 20  # iterations in `success_rate_20`


class WorkersLost(RuntimeError):
    """No rollout worker answered for `worker_timeout_s`."""


class RewardModelAlgorithm(Algorithm):
    """Mixin for any RLlib algorithm: class ConSpec(RewardModelAlgorithm, PPO)."""

    @override(Algorithm)
    def setup(self, config: Any) -> None:
        super().setup(config)
        self._reward_model = self.config.get_reward_model()
        self._waiting: list[tuple[EpisodeSummary, Any]] = []
        self._reward_metrics: dict[str, Any] = {}
        self._recent: deque[float] = deque(maxlen=RECENT)

    @override(Algorithm)
    def training_step(self) -> None:
        start = time.perf_counter()
        reports = self._base_training_step()
        self._log_episodes(reports)
        if self.config.sample_ahead:
            self._begin_sampling()
        if self._reward_model is not None:
            self._waiting += [p for r in reports for p in zip(r.summaries, r.episodes, strict=True)]
            # Algorithms that take a few steps at a time finish few episodes: wait for a batch's
            # worth, or the best of them would mean nothing.
            if self._synchronous or len(self._waiting) >= self.config.episodes_per_update:
                self._update_reward_model(*zip(*self._waiting, strict=True))
                self._waiting = []
            self._log_nested((self._reward_model.name,), self._reward_metrics)
        self._log_seconds("iteration", time.perf_counter() - start)

    def _base_training_step(self) -> list[Report]:
        """The RL algorithm's own step. Tries again while workers restart, but not for ever."""
        deadline = time.monotonic() + self.config.worker_timeout_s
        while True:
            super().training_step()
            self._raise_worker_failure()
            with self._timed("gather"):
                reports = self.env_runner_group.foreach_env_runner(EpisodeRunner.take_report)
            if any(report.sample_seconds for report in reports) or not self._synchronous:
                return reports
            if time.monotonic() > deadline:
                raise WorkersLost(
                    f"no rollout worker answered for {self.config.worker_timeout_s:.0f} s; "
                    "raise worker_timeout_s if they need longer to restart."
                )
            time.sleep(1.0)
            self.restore_env_runners(self.env_runner_group)

    def _begin_sampling(self) -> None:
        """Let remote workers play the next batch while the reward model learns."""
        self.env_runner_group.foreach_env_runner_async(
            lambda runner, position=self._position: runner.sample_at(position), tag=AHEAD
        )

    @property
    def _position(self) -> int:
        """Where training stands: environment steps so far. Part of every checkpoint."""
        key = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        return int(self.metrics.peek(key, default=0))

    @property
    def _synchronous(self) -> bool:
        """Whether a training step without new samples is a failure (not so in IMPALA, APPO)."""
        return self.config.episodes_per_batch is not None

    def _raise_worker_failure(self) -> None:
        """Raise the exception that took a rollout worker out of service, if one did.

        Workers that were killed answer nothing and are restarted; workers whose code raised are
        alive and tell.
        """
        group = self.env_runner_group
        sick = set(group._worker_manager.actor_ids()) - set(group.healthy_env_runner_ids())
        if not sick:
            return
        answers = group._worker_manager.foreach_actor(
            lambda runner: runner.failure,
            healthy_only=False,
            remote_actor_ids=list(sick),
            timeout_seconds=5.0,
        )
        for answer in answers.ignore_errors():
            if answer.get() is not None:
                raise answer.get()

    # --- the reward model ---------------------------------------------------------------------

    def _update_reward_model(
        self, summaries: Sequence[EpisodeSummary], episodes: Sequence[Any]
    ) -> None:
        rng = np.random.default_rng(derived_seed(self.config.seed, "choose", self._position))
        with self._timed("conspec_step"):
            chosen = [
                (episodes[i], success) for i, success in self._reward_model.choose(summaries, rng)
            ]
            results = self.learner_group.foreach_learner(
                lambda learner, chosen=chosen: learner.update_reward_model(chosen)
            )
            self._reward_metrics = _values(results)[0]
        with self._timed("broadcast"):
            self._broadcast()

    def _broadcast(self) -> None:
        """Give every rollout worker the newest snapshot, put into the object store once."""
        snapshot = _values(
            self.learner_group.foreach_learner(lambda learner: learner.reward_snapshot())
        )[0]
        reference = ray.put(snapshot) if self.env_runner_group.num_remote_env_runners() else None
        if self.env_runner is not None:
            self.env_runner.scorer.load(snapshot)
        if reference is None:
            return

        def load(runner: EpisodeRunner) -> None:
            runner.scorer.load(ray.get(reference))

        if self.config.sample_ahead:  # waiting would mean to wait for the episodes being played
            self.env_runner_group.fetch_ready_async_reqs(tags=BROADCAST)
            self.env_runner_group.foreach_env_runner_async(load, tag=BROADCAST)
        else:
            self.env_runner_group.foreach_env_runner(load, local_env_runner=False)

    @override(Algorithm)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return super().get_state(*args, **kwargs) | {"recent_success": list(self._recent)}

    @override(Algorithm)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.config.sample_ahead:  # what was played ahead belongs to another state
            group, limit = self.env_runner_group, self.config.sample_timeout_s
            group.fetch_ready_async_reqs(tags=AHEAD, timeout_seconds=limit)
        self._recent.extend(state.get("recent_success", ()))
        if self.config.get_reward_model() is not None:
            self._broadcast()

    @override(Algorithm)
    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """RLlib's. Without evaluation workers it plays on a training worker, whose episodes are
        not to be learned from.
        """
        results = super().evaluate(*args, **kwargs)
        if self.env_runner is not None:
            self.env_runner.take_report()
        return results

    # --- metrics ------------------------------------------------------------------------------

    def _log_episodes(self, reports: list[Report]) -> None:
        summaries = [s for report in reports for s in report.summaries]
        if summaries:
            if self._reward_model is not None:
                success = self._reward_model.judge(summaries)
            else:
                success = np.array([s.success for s in summaries])
            self._log((ENV_RUNNER_RESULTS, "success_rate"), float(success.mean()))
            # What "solved" is judged by, and a good thing to stop at. RLlib's own windows end with
            # every iteration. Before there are 20, the missing ones count as failures.
            self._recent.append(float(success.mean()))
            self._log((ENV_RUNNER_RESULTS, "success_rate_20"), sum(self._recent) / RECENT)
        self.metrics.log_value(
            (ENV_RUNNER_RESULTS, "num_episodes_dropped_lifetime"),
            sum(report.dropped for report in reports),
            reduce="lifetime_sum",
        )
        paid = [r for report in reports for r in report.intrinsic_returns]
        if paid and self._reward_model is not None:
            self._log((ENV_RUNNER_RESULTS, "intrinsic_return_mean"), float(np.mean(paid)))
        # Workers sample side by side: the slowest one is what the iteration waited for.
        for phase in ("sample", "score"):
            spent = [getattr(report, f"{phase}_seconds") for report in reports]
            self._log_seconds(phase, max(spent, default=0.0))

    def _log(self, key: tuple[str, ...], value: float) -> None:
        """Log the value of this iteration as it is, not averaged with earlier ones."""
        self.metrics.log_value(key, value, window=1)

    def _log_nested(self, key: tuple[str, ...], values: dict[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, dict):
                self._log_nested((*key, name), value)
            else:
                self._log((*key, name), value)

    def _log_seconds(self, phase: str, seconds: float) -> None:
        self._log((SECONDS, phase), seconds)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._log_seconds(phase, time.perf_counter() - start)


def _values(results: Any) -> list[Any]:
    """Results of all learners; an error in one of them is raised here."""
    values = []
    for result in results:
        if not result.ok:
            raise result.get()
        values.append(result.get())
    return values
