"""Learners that take gradient steps together, and a driver that notices when one of them stops.

They add up their gradients, so whoever waits for one that died or raised an exception waits for
ever (torch gives up after half an hour). RLlib waits for the answers of all of them.
"""

from __future__ import annotations

import math
import time
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.utils.actor_manager import CallResult
from ray.rllib.utils.annotations import override

LOOK = 1.0  # seconds between looks at who has answered
GRACE = 5.0  # seconds for others to answer, or for Ray to notice that they died
PATIENCE = 60.0  # seconds for somebody to notice a death: the state is saved from who does


class WatchedLearners(LearnerGroup):
    """RLlib's group. Where one learner fails in an update, those that do not answer are stopped."""

    @override(LearnerGroup)
    def __init__(self, **kwargs: Any) -> None:
        self.stopped: set[int] = set()  # numbers of those that only waited for another one
        super().__init__(**kwargs)

    @override(LearnerGroup)
    def update(self, *, async_update: bool = False, **kwargs: Any) -> list[dict[str, Any]]:
        if async_update or len(self) < 2:
            return super().update(async_update=async_update, **kwargs)
        super().update(async_update=True, **kwargs)
        answers = sorted(self._answers(), key=lambda answer: answer.actor_id)
        # A learner's own error tells more than that another one was stopped for it.
        answers.sort(key=_is_of_the_dead)
        return self._get_results(answers)

    def _answers(self) -> list[CallResult]:
        """Of all learners."""
        manager, found, stop_at = self._worker_manager, [], math.inf
        while manager.num_outstanding_async_reqs():
            found += manager.fetch_ready_async_reqs(timeout_seconds=LOOK)
            failed = [answer for answer in found if not answer.ok]
            if not failed:
                continue
            # Who lives and has failed took its half of the update back, and can be saved.
            wait = PATIENCE if all(map(_is_of_the_dead, failed)) else GRACE
            stop_at = min(stop_at, time.monotonic() + wait)
            if time.monotonic() >= stop_at:
                self._stop(set(manager.actor_ids()) - {answer.actor_id for answer in found})
        return found

    def _stop(self, waiting: set[int]) -> None:
        self.stopped |= waiting
        for number in waiting:
            ray.kill(self._worker_manager.actors()[number])


def _is_of_the_dead(answer: CallResult) -> bool:
    return not answer.ok and isinstance(answer.get(), RayActorError)
