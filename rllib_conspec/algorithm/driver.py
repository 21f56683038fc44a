"""The driver's part: after each RL step, one step of the reward models, and their broadcast.

Order of an iteration (Algorithm 1 of the paper): workers score their episodes with the snapshot
made after the previous iteration; the RL update uses r + r̃; then the reward models learn from the
same episodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.iteration import Iteration, log_nested
from rllib_conspec.algorithm.lost_learners import explained
from rllib_conspec.algorithm.replay import Replayed
from rllib_conspec.algorithm.report import Pointer, Report, RewardUpdate
from rllib_conspec.algorithm.roll_call import RollCall
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.episodes import Summary

OWN_STATE = "reward_models"


class RewardModelAlgorithm(Algorithm):
    """Mixin for any RLlib algorithm: class MyAPPO(RewardModelAlgorithm, APPO)."""

    @override(Algorithm)
    def setup(self, config: Any) -> None:
        self._iteration_metrics = Iteration()
        self._waiting: list[tuple[Summary, Pointer]] = []
        self._reward_metrics: dict[str, Any] = {}
        self._hints: list[str] = []
        self._roll_call = RollCall()
        self._incidents: list[str] = []  # of the iteration that goes on
        self._failure: Exception | None = None
        self._replayed: Replayed | None = None  # pays again what is replayed
        super().setup(config)
        runner = self.env_runner
        spaces = runner.get_spaces() if runner is not None else self._spaces_of_a_worker()
        # On the driver models choose; they build nothing unless they have to pay there, too.
        self._reward_model = self.config.get_reward_model(*spaces[INPUT_ENV_SINGLE_SPACES])
        if self._reward_model is not None:
            self._reward_model.check()
        if self._reward_model is not None and self.config.pays_again:
            self._replayed = Replayed(self._reward_model, self.config)
            self._replayed.watch(self.local_replay_buffer)

    @override(Algorithm)
    def _create_local_replay_buffer_if_necessary(self, config: Any) -> Any:
        """RLlib's, with a seed."""
        buffer = super()._create_local_replay_buffer_if_necessary(config)
        if buffer is not None and hasattr(buffer, "rng"):
            buffer.rng = np.random.default_rng(derived_seed(self.config.seed, "replay"))
        return buffer

    def _spaces_of_a_worker(self) -> dict[str, Any]:
        return self.env_runner_group.foreach_env_runner(lambda runner: runner.get_spaces())[0]

    @override(Algorithm)
    def step(self) -> dict[str, Any]:
        if self._failure is not None:
            raise self._failure
        self._incidents = []
        try:
            result = super().step()
        except Exception as error:
            learners = len(self.learner_group)
            reason = explained(self.learner_group, error)
            if len(self.learner_group) < learners:  # the others cannot go on
                self._failure = reason
            if reason is error:
                raise
            raise reason from None  # what the living say of it is beside the point
        if self._failure is not None:
            # In a trial of Tune: save what there is, and fail at the next step.
            return result | {"should_checkpoint": True}
        told = {"hints": tuple(self._hints), "incidents": tuple(self._incidents)}
        return result | told

    @override(Algorithm)
    def training_step(self) -> None:
        metrics = self._iteration_metrics
        metrics.at(self.iteration)
        with metrics.timed("iteration"):
            reports = self._sample_and_learn()
            metrics.add(reports)
            self._incidents += [line for r in reports for line in r.incidents]
            self._incidents += self._roll_call.call(self.env_runner_group)
            if self._reward_model is not None:
                self._waiting += [
                    p for r in reports for p in zip(r.summaries, r.episodes, strict=True)
                ]
                self._learn_to_pay()
            if self._replayed is not None:
                metrics.spend("replay", self._replayed.take_seconds())
        if self._reward_model is not None:
            log_nested(self.metrics, (), self._reward_metrics)
        metrics.log(self.metrics)

    def _sample_and_learn(self) -> list[Report]:
        """The RL algorithm's own step, and what its workers report of it."""
        super().training_step()
        self._raise_worker_failure()
        return self._take_reports()

    def _take_reports(self) -> list[Report]:
        return self.env_runner_group.foreach_env_runner(EpisodeRunner.take_report)

    @property
    def _position(self) -> int:
        """Where training stands: environment steps so far. Part of every checkpoint."""
        key = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        return int(self.metrics.peek(key, default=0))

    @property
    def _synchronous(self) -> bool:
        """Whether batches are whole episodes (not so in IMPALA, APPO, DQN, SAC)."""
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

    # --- the reward models --------------------------------------------------------------------

    @property
    def _enough(self) -> bool:
        """Whether there is something to learn from. Algorithms that take a few steps at a time
        finish few episodes: a batch's worth has to come together, or the best of them would mean
        nothing.
        """
        least = 1 if self._synchronous else self.config.episodes_per_update
        return len(self._waiting) >= least

    def _learn_to_pay(self) -> None:
        """Let the reward models learn from what waits; one call to every learner and back."""
        if not self._enough:
            return
        with self._iteration_metrics.timed("reward_model"):
            chosen = self._choose()
            results = self.learner_group.foreach_learner(
                lambda learner, chosen=chosen: learner.update_reward_model(chosen)
            )
        self._take_in(results)

    def _choose(self) -> list[tuple[Any, Pointer]]:
        """(labels, pointer) of what to learn from, of all that waits."""
        summaries, pointers = zip(*self._waiting, strict=True)
        self._waiting = []
        rng = np.random.default_rng(derived_seed(self.config.seed, "choose", self._position))
        return [(labels, pointers[i]) for i, labels in self._reward_model.choose(summaries, rng)]

    def _take_in(self, results: Any) -> RewardUpdate | None:
        """What the learners answered to an update; they all did the same."""
        try:
            update = learner_values(results)[0]
        except Exception as error:
            if self._trial_info is None:
                raise
            # Raised by the next step, when Tune has saved.
            self._failure = explained(self.learner_group, error)
            return None
        self._reward_metrics, self._hints = update.metrics, update.hints
        self._iteration_metrics.send("reward_model", update.sent)
        self._announce(update.snapshot)
        return update

    def _announce(self, snapshot: Any) -> None:
        """Give the newest snapshot to all that pay."""
        if self._replayed is not None:
            self._replayed.load(snapshot)
        if self.env_runner is not None:
            self.env_runner.load(snapshot)
        if self.env_runner_group.num_remote_env_runners():
            self._tell_workers(snapshot)

    def _tell_workers(self, snapshot: Any) -> None:
        """Give it to the remote ones, put into the object store once."""
        reference = ray.put(snapshot)
        self.env_runner_group.foreach_env_runner(
            lambda runner: runner.load(ray.get(reference)), local_env_runner=False
        )

    def _snapshot(self) -> Any:
        """The learners' newest snapshot; None without reward models."""
        if self._reward_model is None:
            return None
        return learner_values(
            self.learner_group.foreach_learner(lambda learner: learner.reward_model.snapshot())
        )[0]

    @override(Algorithm)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        own = self._iteration_metrics.get_state() | {"metrics": self._reward_metrics}
        return super().get_state(*args, **kwargs) | {OWN_STATE: own}

    @override(Algorithm)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if OWN_STATE in state:
            self._iteration_metrics.set_state(state[OWN_STATE])
            self._reward_metrics = state[OWN_STATE]["metrics"]
        if self._reward_model is not None:
            self._announce(self._snapshot())

    @override(Algorithm)
    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """RLlib's. Without evaluation workers it plays on a training worker, whose episodes are
        not to be learned from.
        """
        results = super().evaluate(*args, **kwargs)
        if self.env_runner is not None:
            self.env_runner.take_report()
        return results


def learner_values(results: Any) -> list[Any]:
    """Results of all learners; an error in one of them is raised here."""
    values = []
    for result in results:
        if not result.ok:
            raise result.get()
        values.append(result.get())
    return values
