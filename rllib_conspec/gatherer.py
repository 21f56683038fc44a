"""Gathers the answers of some of very many rollout workers, so that the driver takes one for all.

A process beside the driver's. It reads no answer, so it needs neither torch nor RLlib: what it
imports is all its memory. References that came with answers, to episodes, stay here, and the driver
gets a single one to all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError

NOW = "now"  # tag of what is waited for at once


class Gathered(NamedTuple):
    """What workers answered."""

    answers: list[tuple[int, bytes, int]]  # worker, its answer, how many references stood in it
    bundle: list[ray.ObjectRef]  # one, to the list of all of those; or none
    failed: list[tuple[int, ray.ObjectRef]]  # worker, and what raises when it is read
    dropped: int = 0  # workers that are not waited for any longer


class Gatherer:
    """Passes requests on to `workers`, by number: handles of actors with a method `apply`. They
    answer with bytes and a list of references, or with None.
    """

    def __init__(self, workers: Mapping[int, Any]) -> None:
        self._workers = workers
        # What was asked and not taken yet, with its worker: by tag.
        self._asked: dict[str, dict[ray.ObjectRef, int]] = defaultdict(dict)

    def ask(self, tag: str, request: tuple[ray.ObjectRef], numbers: Iterable[int]) -> None:
        """Ask these workers, and wait for nobody; not those that still owe an answer of this tag.

        The request stands in a tuple, or Ray would have fetched it for this process.
        """
        asked = self._asked[tag]
        owing = set(asked.values())
        for number in numbers:
            if number not in owing:
                asked[self._workers[number].apply.remote(request[0])] = number

    def answers(self, tag: str, limit: float | None) -> Gathered:
        """Of all who answer within so many seconds, in the order in which they were asked. The
        others owe theirs.
        """
        asked = self._asked[tag]
        ready = ray.wait(list(asked), num_returns=len(asked), timeout=limit)[0] if asked else []
        answers, references, failed = [], [], []
        for call in ready:
            number = asked.pop(call)
            try:
                answer = ray.get(call)
            except RayError:
                failed.append((number, call))
                continue
            if answer is not None:
                data, own = answer
                answers.append((number, data, len(own)))
                references += own
        self._forget({number for number, _ in failed})
        return Gathered(answers, [ray.put(references)] if references else [], failed)

    def gather(
        self, request: tuple[ray.ObjectRef], numbers: Iterable[int], limit: float | None
    ) -> Gathered:
        """Ask, and wait for the answers. Those that come too late are never taken."""
        self.ask(NOW, request, numbers)
        found = self.answers(NOW, limit)
        return found._replace(dropped=len(self._asked.pop(NOW)))

    def _forget(self, numbers: set[int]) -> None:
        """Expect nothing more of workers that are out of service."""
        for tag, asked in self._asked.items():
            self._asked[tag] = {call: n for call, n in asked.items() if n not in numbers}
