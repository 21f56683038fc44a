"""Memories: bounded, first in first out."""

import pickle

import builders
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.memory import EpisodeMemory, draw, pack, unpack

SMALL = builders.options()


def numbered(count: int) -> list[Episode]:
    return [builders.episode(np.full((2, 3), k, np.uint8), k % 2 == 0) for k in range(count)]


# --- EpisodeMemory and draw -------------------------------------------------------------------


@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=6))
@settings(builders.examples)
def test_memory_keeps_the_newest_in_order(capacity, batches):
    memory, everything = EpisodeMemory(capacity), []
    for size in batches:
        batch = numbered(size)
        memory.extend(batch)
        everything += batch
        assert list(memory) == everything[-capacity:]
        assert len(memory) == min(capacity, len(everything))


@given(st.integers(1, 10), st.integers(1, 12), st.integers(0, 1000))
@settings(builders.examples)
def test_draw_gives_different_episodes_in_stored_order(stored, count, seed):
    episodes = numbered(stored)
    drawn = draw(episodes, count, np.random.default_rng(seed))
    positions = [episodes.index(e) for e in drawn]
    assert len(drawn) == min(count, stored)
    assert positions == sorted(set(positions))
    assert draw(episodes, count, np.random.default_rng(seed)) == drawn


def test_draw_takes_every_episode_equally_often():
    episodes, rng = numbered(6), np.random.default_rng(0)
    drawn = [episodes.index(e) for _ in range(3000) for e in draw(episodes, 2, rng)]
    # 1000 expected, standard deviation 26.
    assert np.all(np.abs(np.bincount(drawn, minlength=6) - 1000) < 130)


def test_draw_from_a_memory():
    memory = EpisodeMemory(3)
    memory.extend(numbered(3))
    assert draw(memory, 5, np.random.default_rng(0)) == tuple(memory)


# --- pack and unpack --------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=5))
@settings(builders.examples)
def test_packing_keeps_content_order_and_sharing(groups):
    pool = [
        builders.episode(builders.frames(SMALL, k + 1, k), k % 2 == 0, ((k, str(k)),)).packed()
        for k in range(5)
    ]
    packed = pickle.loads(pickle.dumps(pack([[pool[i] for i in group] for group in groups])))
    assert len(packed["episodes"]) == len({i for group in groups for i in group})
    restored = unpack(packed)
    assert [len(group) for group in restored] == [len(group) for group in groups]
    same = {}
    for found, positions in zip(restored, groups, strict=True):
        for episode, i in zip(found, positions, strict=True):
            assert same.setdefault(i, episode) is episode
            got, own = episode.unpacked(), pool[i].unpacked()
            assert np.array_equal(got.observations, own.observations)
            assert got.frames.dtype == own.frames.dtype
            assert list(episode.digests) == list(pool[i].digests)
            assert (got.events, got.success) == (own.events, own.success)
            assert not episode.frames.flags.writeable


def test_packing_keeps_all_that_plays_an_episode_again():
    rng = np.random.default_rng(0)
    episode = Episode(
        observations=rng.normal(size=(4, 2)),
        actions=rng.integers(0, 3, 3),
        rewards=rng.normal(size=3),
        terminated=False,
        success=True,
        info={"heavy": object()},
        seed=17,
    )
    ((found,),) = unpack(pickle.loads(pickle.dumps(pack([[episode.packed()]]))))
    found = found.unpacked()
    for name in ("observations", "actions", "rewards"):
        assert np.array_equal(getattr(found, name), getattr(episode, name))
    assert (found.terminated, found.success, found.seed) == (False, True, 17)
    assert found.info == {}


def test_equal_episodes_that_are_not_one_stay_two():
    one, two = numbered(1)[0], numbered(1)[0]
    ((a, b),) = unpack(pack([[one, two]]))
    assert a is not b
