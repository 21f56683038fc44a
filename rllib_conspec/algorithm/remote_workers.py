"""Asking all remote rollout workers: the driver does it itself, or has it done where they are many.

A request, an answer and the references in it cost the driver 0.6 ms a worker, whatever they hold:
most of it in Ray's threads, for the call and for references to what other processes own. Where each
of a few gatherers asks some of the workers, the driver pays that for a gatherer only.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_conspec.algorithm.packed import unpacked
from rllib_conspec.algorithm.report import Held
from rllib_conspec.gatherer import Gatherer

MOST = 16  # workers that one process asks


class _Post(NamedTuple):
    """A gatherer, and the workers that it asks: handles by number."""

    gatherer: Any
    workers: dict[int, Any]


class RemoteWorkers:
    """The remote workers of a group. Requests are references to functions of a worker; answers are
    `packed`, or None. Who fails is taken out of service as RLlib does it.
    """

    def __init__(self, group: EnvRunnerGroup, most: float) -> None:
        self._group = group
        self._most = most
        self._manager = group._worker_manager
        self._posts: list[_Post] | None = None  # None: not needed so far
        self._tags: set[str] = set()  # by which gatherers were ever asked
        self._incidents: list[str] = []

    def ask(self, request: ray.ObjectRef, tag: str) -> None:
        """Ask everybody, and wait for nobody."""
        posts, rest = self._divided()
        for post, numbers in posts:
            post.gatherer.ask.remote(tag, (request,), numbers)
            self._tags.add(tag)
        if rest:
            self._group.foreach_env_runner_async(request, tag=tag, remote_worker_ids=rest)

    def answers(self, tag: str, limit: float | None) -> list[tuple[int, Any]]:
        """(worker, answer) to what was asked by this tag, of all who answer within so many seconds
        with more than None.
        """
        posts = self._posts if tag in self._tags else ()
        calls = [(post, post.gatherer.answers.remote(tag, limit)) for post in posts]
        own = self._group.fetch_ready_async_reqs(tags=tag, timeout_seconds=limit)
        found = [(number, unpacked(*answer)) for number, answer in own if answer is not None]
        return found + [answer for call in calls for answer in self._taken(*call)]

    def ask_and_wait(self, request: ray.ObjectRef, limit: float | None) -> list[Any]:
        """What everybody answers who does so within so many seconds, in the order of workers; those
        whose gatherer died come last.
        """
        posts, rest = self._divided()
        calls = [
            (post, post.gatherer.gather.remote((request,), numbers, limit))
            for post, numbers in posts
        ]
        found = [answer for call in calls for _, answer in self._taken(*call)]
        if rest:
            own = self._group.foreach_env_runner(
                request, local_env_runner=False, remote_worker_ids=rest, timeout_seconds=limit
            )
            found += [unpacked(*answer) for answer in own]
        return found

    def take_incidents(self) -> list[str]:
        """What the user should read, since the last time."""
        incidents, self._incidents = self._incidents, []
        return incidents

    def stop(self) -> None:
        for post in self._posts or ():
            ray.kill(post.gatherer)
        self._posts = []

    def _divided(self) -> tuple[list[tuple[_Post, list[int]]], list[int]]:
        """The workers in service: those of every gatherer, and those that the driver asks."""
        actors, rest = self._manager.actors(), self._manager.healthy_actor_ids()
        if len(actors) <= self._most:
            return [], rest
        if self._posts is None:
            self._posts = _posts(actors, self._most)
        found = []
        for post in self._posts:
            own = [n for n in rest if post.workers.get(n) is actors[n]]
            if own:
                found.append((post, own))
        theirs = {number for _, own in found for number in own}
        return found, [n for n in rest if n not in theirs]

    def _taken(self, post: _Post, call: ray.ObjectRef) -> list[tuple[int, Any]]:
        """What a gatherer found; those who failed are taken out of service."""
        try:
            answers, bundle, failed, dropped = ray.get(call)
        except RayActorError:
            self._lose(post)
            return []
        place, found = 0, []
        for number, data, count in answers:
            own = [Held(bundle[0], i) for i in range(place, place + count)]
            found.append((number, unpacked(data, own)))
            place += count
        self._group._num_env_runners_dropped_lifetime += dropped
        self._take_out(failed)
        return found

    def _take_out(self, failed: list[tuple[int, ray.ObjectRef]]) -> None:
        """As if the driver had asked them itself."""
        numbers, calls = zip(*failed, strict=True) if failed else ((), ())
        _, results = self._manager._fetch_result(
            remote_actor_ids=list(numbers), remote_calls=list(calls), tags=[None] * len(calls)
        )
        self._manager.handle_remote_call_result_errors(
            results, ignore_ray_errors=self._group._ignore_ray_errors_on_env_runners
        )

    def _lose(self, post: _Post) -> None:
        """What its workers answer is lost this once."""
        if post not in self._posts:
            return
        self._posts.remove(post)
        numbers = ", ".join(map(str, post.workers))
        self._incidents.append(
            f"the process that gathers the answers of rollout workers {numbers} died: the driver "
            "asks them itself from now on."
        )


def _posts(actors: dict[int, Any], most: int) -> list[_Post]:
    """As few gatherers as may be, on the driver's machine: with that, all would be lost anyhow."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    make = ray.remote(num_cpus=0, scheduling_strategy=here)(Gatherer)
    numbers = list(actors)
    size = math.ceil(len(numbers) / math.ceil(len(numbers) / most))
    parts = [
        {n: actors[n] for n in numbers[start : start + size]}
        for start in range(0, len(numbers), size)
    ]
    return [_Post(make.remote(part), part) for part in parts]
