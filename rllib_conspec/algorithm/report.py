"""What rollout workers and learners tell the driver, and where learners find the episodes.

Frames travel once: a worker puts the RL episodes and the reward models' episodes, which share their
arrays, into Ray's object store as one `Share`. The driver gets summaries, and hands on references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import ray
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from rllib_conspec.algorithm.paying import ENVIRONMENT
from rllib_conspec.algorithm.policy import HAPPENED
from rllib_conspec.episodes import Episode, Summary


class Share(NamedTuple):
    """The episodes of a worker's batch that one learner trains the policy on."""

    rl: list[SingleAgentEpisode]  # with intrinsic rewards
    episodes: list[Episode]  # the same, as reward models see them; empty where there is no model


class Held(NamedTuple):
    """A reference that another process keeps in a list with others: where workers are many, it
    would cost the driver too much to have all of them.
    """

    bundle: ray.ObjectRef  # to the list
    place: int


class Pointer(NamedTuple):
    """Where an `Episode` is: a share (or a reference to it), and the place in it."""

    share: Any
    index: int


@dataclass
class Report:
    """What happened on a worker since its last report."""

    summaries: list[Summary] = field(default_factory=list)
    episodes: list[Pointer] = field(default_factory=list)
    intrinsic_returns: list[float] = field(default_factory=list)
    version: int = 0  # of the snapshot that paid
    any_reward: bool = False  # whether anything was paid, by the environment or a model
    dropped: int = 0  # episodes lost because their environment broke down
    incidents: list[str] = field(default_factory=list)  # what else the user should read, in lines
    sample_seconds: float = 0.0
    score_seconds: float = 0.0


class RewardUpdate(NamedTuple):
    """What a learner answers when the reward models have learned."""

    metrics: dict[str, Any]
    hints: list[str]
    snapshot: Any
    seconds: float  # that it took
    sent: int = 0  # bytes that were brought to the device for it


def fetched(thing: Any) -> Any:
    """The object behind a reference, or the object itself where no transfer is needed.

    None if the worker that made it died, and its objects with it.
    """
    return all_fetched([thing])[0]


def all_fetched(things: Sequence[Any]) -> list[Any]:
    """The same for each; lists of references are fetched once."""
    bundles = {thing.bundle for thing in things if isinstance(thing, Held)}
    lists = {bundle: _got(bundle) for bundle in bundles}
    return [_got(_reference(thing, lists)) for thing in things]


def _reference(thing: Any, lists: Mapping[ray.ObjectRef, list | None]) -> Any:
    if not isinstance(thing, Held):
        return thing
    own = lists[thing.bundle]
    return None if own is None else own[thing.place]


def _got(thing: Any) -> Any:
    if not isinstance(thing, ray.ObjectRef):
        return thing
    try:
        return ray.get(thing)
    except (ray.exceptions.ObjectLostError, ray.exceptions.OwnerDiedError):
        return None


def episodes_at(pointers: Iterable[tuple[Any, Pointer]]) -> list[tuple[Any, Episode]]:
    """(label, episode) behind (label, pointer), without those that were lost. A share is fetched
    once, however many of its episodes are asked for: it is unpickled as a whole.
    """
    pointers = list(pointers)
    shares = {_key(p.share): p.share for _, p in pointers}
    found = dict(zip(shares, all_fetched(list(shares.values())), strict=True))
    return [
        (label, found[_key(p.share)].episodes[p.index])
        for label, p in pointers
        if found[_key(p.share)] is not None
    ]


def _key(share: Any) -> Any:
    return share if isinstance(share, ray.ObjectRef | Held) else id(share)


def joined(
    pieces: Sequence[SingleAgentEpisode],
    success: Callable[[Episode], bool | None],
    critical_events: Sequence[str],
) -> Episode:
    """The finished episode that these pieces of RLlib's are, judged; arrays are shared where there
    is only one piece.
    """
    last = pieces[-1]
    seed = pieces[0].get_infos(0).get("reset_seed")
    infos = [info for i, piece in enumerate(pieces) for info in piece.get_infos()[i > 0 :]]
    outputs = {
        name: _one([_data(p.extra_model_outputs[name]) for p in pieces])
        for name in last.extra_model_outputs
        if name not in _RLLIBS_OWN
    }
    episode = Episode(
        observations=_one(
            [_data(pieces[0].observations), *(_data(p.observations)[1:] for p in pieces[1:])]
        ),
        actions=_one([_data(p.actions) for p in pieces]),
        rewards=_one([_data(p.rewards) for p in pieces]).astype(np.float32, copy=False),
        terminated=bool(last.is_terminated),
        events=_events(infos[1:], critical_events),
        outputs=outputs,
        info=infos[-1],
        seed=None if seed is None else int(seed),  # vector environments make NumPy's of it
    )
    verdict = success(episode)
    return episode.judged(None if verdict is None else bool(verdict))


_RLLIBS_OWN = {value for name, value in vars(Columns).items() if not name.startswith("_")}
_RLLIBS_OWN |= {WEIGHTS_SEQ_NO, ENVIRONMENT, HAPPENED}


def _data(buffer: InfiniteLookbackBuffer) -> np.ndarray:
    """All that an episode's buffer holds: the array itself where it can be, so that whoever pickles
    both episodes pickles it once.
    """
    if isinstance(buffer.data, np.ndarray) and buffer.lookback == 0:
        return buffer.data
    return np.asarray(buffer.get())


def _one(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _events(
    infos: Sequence[dict[str, Any]], critical_events: Sequence[str]
) -> tuple[tuple[int, str], ...]:
    """(step, name) of the infos that the environment declares as `critical_events`."""
    if not critical_events:
        return ()
    return tuple(
        (t, f"{name} {int(info[name])}")
        for t, info in enumerate(infos)
        for name in critical_events
        if info.get(name)
    )
