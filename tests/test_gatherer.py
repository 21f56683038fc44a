"""A process between the driver and some of its workers."""

import time

import numpy as np
import pytest
import ray

from rllib_conspec.gatherer import Gatherer

NUMBERS = (3, 1, 2)


class Mute(Exception):
    """A worker's own."""


@ray.remote(num_cpus=0)
class Worker:
    """Answers as rollout workers do."""

    def __init__(self, number):
        self.number = number

    def apply(self, func):
        return func(self)


def answer(worker):
    return b"I am %d" % worker.number, [ray.put(np.full(3, worker.number + i)) for i in range(2)]


def nothing(worker):
    """What is asked for has no answer."""


def two_is_late(worker):
    time.sleep(3.0 * (worker.number == 2))
    return b"%d" % worker.number, []


def one_is_mute(worker):
    if worker.number == 1:
        raise Mute("not a word")
    return b"%d" % worker.number, []


@pytest.fixture(scope="module")
def workers(ray_local):
    return {number: Worker.remote(number) for number in NUMBERS}


@pytest.fixture(scope="module")
def gatherer(workers):
    return ray.remote(num_cpus=0)(Gatherer).remote(workers)


def gather(gatherer, request, limit=None, numbers=NUMBERS):
    return ray.get(gatherer.gather.remote((ray.put(request),), numbers, limit))


def test_one_answer_for_all_in_the_order_of_asking(gatherer):
    found = gather(gatherer, answer)
    assert found.answers == [(3, b"I am 3", 2), (1, b"I am 1", 2), (2, b"I am 2", 2)]
    assert (found.failed, found.dropped) == ([], 0)
    (bundle,) = found.bundle
    assert [list(ray.get(r)) for r in ray.get(bundle)] == [[n] * 3 for n in (3, 4, 1, 2, 2, 3)]


def test_only_those_are_asked_who_are_named(gatherer):
    assert [number for number, _, _ in gather(gatherer, answer, numbers=[2]).answers] == [2]
    assert gather(gatherer, answer, numbers=[]) == ([], [], [], 0)


def test_who_has_nothing_to_say_is_not_in_the_answer(gatherer):
    assert gather(gatherer, nothing) == ([], [], [], 0)


def test_who_is_late_is_left_out_for_good(gatherer):
    found = gather(gatherer, two_is_late, limit=1.0)
    assert [number for number, _, _ in found.answers] == [3, 1]
    assert (found.bundle, found.dropped) == ([], 1)
    assert len(gather(gatherer, answer).answers) == 3


def test_who_is_not_waited_for_may_answer_later_and_is_not_asked_twice(gatherer):
    def answers(limit):
        found = ray.get(gatherer.answers.remote("later", limit))
        return [(number, data) for number, data, _ in found.answers]

    request = (ray.put(two_is_late),)
    ray.get(gatherer.ask.remote("later", request, NUMBERS))
    assert answers(1.0) == [(3, b"3"), (1, b"1")]
    ray.get(gatherer.ask.remote("later", (ray.put(answer),), [2, 1]))
    assert answers(None) == [(2, b"2"), (1, b"I am 1")]
    assert answers(None) == []


def test_what_a_worker_raises_is_handed_on(gatherer):
    ray.get(gatherer.ask.remote("never taken", (ray.put(nothing),), [1, 2]))
    found = gather(gatherer, one_is_mute)
    assert [number for number, _, _ in found.answers] == [3, 2]
    ((number, failure),) = found.failed
    assert number == 1
    with pytest.raises(Mute, match="not a word"):
        ray.get(failure)
    owed = ray.get(
        gatherer.__ray_call__.remote(lambda own: list(own._asked["never taken"].values()))
    )
    assert owed == [2], "who is out of service owes nothing"


def test_a_dead_worker_is_told_of(workers, gatherer):
    """Comes last: it is not replaced."""
    ray.kill(workers[3])
    ((number, failure),) = gather(gatherer, answer).failed
    assert number == 3
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(failure)


def test_it_needs_little(ray_local):
    """Neither torch nor RLlib is imported in its process."""
    alone = ray.remote(num_cpus=0, runtime_env={"env_vars": {"A": "process of its own"}})(Gatherer)

    def imported(own):
        import sys

        return {"torch", "ray.rllib"} & set(sys.modules)

    assert ray.get(alone.remote({}).__ray_call__.remote(imported)) == set()
