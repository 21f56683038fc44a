"""When a learner fails or its process is gone: why, in one line, and what is left can be saved.

Learners add up their gradients, so none can go on without the others, and what the living raise
when one has died tells of a connection. RLlib takes them out of service with the dead one, and
would save nothing then.
"""

from __future__ import annotations

import ray
from ray.exceptions import RayActorError

from rllib_conspec.algorithm.learner_group import PATIENCE, WatchedLearners


class LearnersLost(RuntimeError):
    """A learner, or all of them, are gone."""


def explained(group: WatchedLearners, error: Exception) -> Exception:
    """`error`, raised by a request to the learners, or what stands behind it. The group is left
    with those who live, and can be saved.
    """
    if group.is_local:
        return error
    everyone = dict(group._worker_manager.actors())
    lost = _dead(everyone)
    for number in lost:
        group._worker_manager.remove_actor(number)
    group._workers = [actor for number, actor in everyone.items() if number not in lost]
    for number in everyone.keys() - lost:
        group._worker_manager.set_actor_state(number, healthy=True)
    died = lost - group.stopped
    return LearnersLost(_line(sorted(died), len(everyone))) if died else error


def _dead(actors: dict[int, ray.actor.ActorHandle]) -> set[int]:
    asked = {number: actor.apply.remote(_nothing) for number, actor in actors.items()}
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=PATIENCE)
    return {number for number, answer in asked.items() if _is_of_the_dead(answer)}


def _is_of_the_dead(answer: ray.ObjectRef) -> bool:
    try:
        ray.get(answer, timeout=0)
    except RayActorError:
        return True
    except Exception:  # it raises or is busy: it lives
        return False
    return False


def _nothing(learner: object) -> None:
    """Something to answer to."""


def _line(lost: list[int], count: int) -> str:
    who = "learner " + ", ".join(str(number + 1) for number in lost) + f" of {count}"
    if len(lost) == count:
        who = "the learner" if count == 1 else f"all {count} learners"
    return (
        f"{who} died: the process was killed, or its machine is gone (out of memory?). Training "
        "cannot go on without it; resume from the last checkpoint."
    )
