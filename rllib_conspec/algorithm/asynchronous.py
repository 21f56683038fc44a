"""The driver's part where nobody waits: IMPALA, APPO and what derives from them.

Workers sample and learners learn at their own pace, and so do the reward models: an update goes on
in a thread of each learner, beside the policy's; the driver looks whether it is done, and takes its
snapshot up when it is. Episodes that end meanwhile wait for the next update. Reports come with the
samples, and snapshots are sent without waiting for an answer. So pay is older than in Algorithm 1
by the time that an update takes, as the policy's weights are in these algorithms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.utils.actor_manager import ResultOrError
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.driver import RewardModelAlgorithm
from rllib_conspec.algorithm.env_runner import REPORT
from rllib_conspec.algorithm.learner import RewardModelLearner
from rllib_conspec.algorithm.report import Report


class AsynchronousRewardModelAlgorithm(RewardModelAlgorithm):
    """Mixin for IMPALA: class MyAPPO(AsynchronousRewardModelAlgorithm, APPO)."""

    @override(RewardModelAlgorithm)
    def setup(self, config: Any) -> None:
        self._reports: list[Report] = []  # that came with samples
        super().setup(config)
        self._beside = Beside(self.learner_group)

    @override(IMPALA)
    def _sample_and_get_connector_states(self) -> tuple:
        found = super()._sample_and_get_connector_states()
        self._reports += [s.pop(REPORT) for s in found[1] if REPORT in s]
        return found

    @override(RewardModelAlgorithm)
    def _take_reports(self) -> list[Report]:
        reports, self._reports = self._reports, []
        if self.env_runner is not None:  # it plays where no other does
            reports.append(self.env_runner.take_report())
        return reports

    @override(RewardModelAlgorithm)
    def _learn_to_pay(self) -> None:
        answers = self._beside.answers()
        if answers is not None and (update := self._take_in(answers)) is not None:
            self._iteration_metrics.spend("reward_model", update.seconds)
        if self._enough and not self._beside.busy:
            self._beside.begin(self._choose())

    @override(RewardModelAlgorithm)
    def _tell_workers(self, snapshot: Any) -> None:
        reference = ray.put(snapshot)
        self.env_runner_group.foreach_env_runner(
            lambda runner: runner.load(ray.get(reference)),
            local_env_runner=False,
            timeout_seconds=0.0,
        )


class Beside:
    """One update of the reward models at a time, on all learners, that nobody waits for."""

    def __init__(self, group: LearnerGroup) -> None:
        self._group = group
        self._asked: dict[int, ray.ObjectRef | ResultOrError] = {}  # by learner
        self._answers: dict[int, ResultOrError] = {}

    @property
    def busy(self) -> bool:
        """Whether some learner has not answered."""
        return bool(self._asked)

    def begin(self, chosen: list) -> None:
        self._answers = {}
        learners = [0] if self._group.is_local else self._group._worker_manager.actor_ids()
        for learner in learners:
            self._ask(learner, lambda own, chosen=chosen: own.begin_reward_update(chosen))

    def answers(self) -> list[ResultOrError] | None:
        """What every learner answers, once, when the last of them is done."""
        if not self.busy:
            return None
        for learner, asked in list(self._asked.items()):
            if isinstance(asked, ray.ObjectRef) and not ray.wait([asked], timeout=0)[0]:
                continue
            answer = _answer(asked)
            if answer.ok and answer.get() is None:  # its update goes on
                self._ask(learner, RewardModelLearner.reward_update)
            else:
                del self._asked[learner]
                self._answers[learner] = answer
        return None if self.busy else [answer for _, answer in sorted(self._answers.items())]

    def _ask(self, learner: int, what: Callable[[RewardModelLearner], Any]) -> None:
        if self._group.is_local:
            self._asked[learner] = _attempt(lambda: what(self._group._learner))
        else:
            # Not by RLlib's own requests: its next update would take our answers for its own.
            self._asked[learner] = self._group._worker_manager.actors()[learner].apply.remote(what)


def _answer(asked: ray.ObjectRef | ResultOrError) -> ResultOrError:
    return asked if isinstance(asked, ResultOrError) else _attempt(lambda: ray.get(asked))


def _attempt(call: Callable[[], Any]) -> ResultOrError:
    try:
        return ResultOrError(result=call())
    except Exception as error:
        return ResultOrError(error=error)
