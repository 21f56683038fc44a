"""Memories: bounded, first in first out, immutable; equal frames found exactly."""

import pickle

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.retrospection.memory import (
    DistinctFrames,
    EpisodeMemory,
    Reservoir,
    StoredEpisode,
    draw,
    pack,
    unpack,
)

SMALL = builders.options()


def numbered(count: int) -> list[StoredEpisode]:
    return [StoredEpisode.of(np.full((2, 3), k, np.uint8), k % 2 == 0) for k in range(count)]


# --- StoredEpisode ----------------------------------------------------------------------------


def test_a_stored_episode_cannot_be_changed():
    episode = StoredEpisode.of(np.zeros((3, 2)), True)
    with pytest.raises(ValueError, match="read-only"):
        episode.frames[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        episode.digests[0] = 1
    with pytest.raises(AttributeError):
        episode.success = False
    with pytest.raises(AttributeError):
        episode.frames = np.ones((3, 2))


def test_writing_to_the_buffer_that_an_episode_came_from_does_not_change_it():
    buffer = np.zeros((10, 2))
    episode = StoredEpisode.of(buffer[2:5], True)
    buffer[:] = 7
    assert (episode.frames == 0).all()


def test_storing_an_episode_leaves_the_given_array_usable():
    given_array = np.zeros((3, 2))
    StoredEpisode.of(given_array, True)
    given_array[0] = 1


def test_length_and_digests():
    frames = np.array([[1, 2], [3, 4], [1, 2]], dtype=np.uint8)
    episode = StoredEpisode.of(frames, np.True_)
    assert len(episode) == 3
    assert episode.success is True
    first, second, third = episode.digests
    assert first == third != second


def test_frames_that_do_not_lie_contiguously_are_stored_as_they_look():
    frames = np.arange(24, dtype=np.uint8).reshape(4, 6)[::-1, ::2]
    episode = StoredEpisode.of(frames, False)
    assert (episode.frames == frames).all()
    assert list(episode.digests) == list(StoredEpisode.of(frames.copy(), False).digests)


def test_a_verdict_or_a_copy_changes_nothing_else():
    episode = StoredEpisode.of(np.zeros((3, 2)), True, [(np.int64(2), "door")])
    lost, copy = episode.judged(np.False_), episode.copied()
    assert (lost.success, copy.success, episode.success) == (False, True, True)
    assert lost.frames is episode.frames
    assert not np.shares_memory(copy.frames, episode.frames)
    for other in (lost, copy):
        assert (other.frames == episode.frames).all()
        assert not other.frames.flags.writeable
        assert list(other.digests) == list(episode.digests)
        assert other.events == ((2, "door"),)


def test_an_episode_survives_pickling():
    episode = StoredEpisode.of(builders.frames(SMALL, 4, 0), True, [(1, "key")])
    copy = pickle.loads(pickle.dumps(episode))
    assert (copy.frames == episode.frames).all()
    assert list(copy.digests) == list(episode.digests)
    assert copy.events == ((1, "key"),)
    assert copy.success is True


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


@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=6), st.booleans())
@settings(builders.examples)
def test_nothing_offered_is_lost_or_doubled(capacity, batches, reservoir):
    """What a memory does not hold is given back: held-out episodes move on to be learned from."""
    rng = np.random.default_rng(0)
    memory = Reservoir(capacity, rng) if reservoir else EpisodeMemory(capacity)
    offered, left = [], []
    for size in batches:
        batch = numbered(size)
        offered += batch
        left += memory.offer(batch)
        assert len(memory) == min(capacity, len(offered))
        assert {id(e) for e in [*memory, *left]} == {id(e) for e in offered}
        assert len(memory) + len(left) == len(offered) == memory.seen


def test_a_reservoir_is_a_uniform_sample_of_all_offered():
    rng, counts = np.random.default_rng(0), np.zeros(20)
    episodes = numbered(20)
    for _ in range(2000):
        memory = Reservoir(5, rng)
        memory.extend(episodes)
        counts[[episodes.index(e) for e in memory]] += 1
    # 500 expected, standard deviation 19.
    assert np.all(np.abs(counts - 500) < 95)


def test_a_restored_reservoir_goes_on_alike():
    first = Reservoir(4, np.random.default_rng(1))
    first.extend(numbered(9))
    second = Reservoir(4, np.random.default_rng())
    second.restore(first, first.seen)
    second._rng.bit_generator.state = first._rng.bit_generator.state
    more = numbered(30)
    first.extend(more)
    second.extend(more)
    assert list(first) == list(second) and first.seen == second.seen == 39


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
        StoredEpisode.of(builders.frames(SMALL, k + 1, k), k % 2 == 0, [(k, str(k))])
        for k in range(5)
    ]
    packed = pickle.loads(pickle.dumps(pack([[pool[i] for i in group] for group in groups])))
    assert len(packed["frames"]) == len({i for group in groups for i in group})
    restored = unpack(packed)
    assert [len(group) for group in restored] == [len(group) for group in groups]
    same = {}
    for found, positions in zip(restored, groups, strict=True):
        for episode, i in zip(found, positions, strict=True):
            assert np.array_equal(episode.frames, pool[i].frames)
            assert episode.frames.dtype == pool[i].frames.dtype
            assert list(episode.digests) == list(pool[i].digests)
            assert episode.events == pool[i].events
            assert episode.success == pool[i].success
            assert same.setdefault(i, episode) is episode
            assert not episode.frames.flags.writeable


def test_equal_episodes_that_are_not_one_stay_two():
    one, two = numbered(1)[0], numbered(1)[0]
    ((a, b),) = unpack(pack([[one, two]]))
    assert a is not b


# --- DistinctFrames ---------------------------------------------------------------------------


def assert_exact(episodes):
    distinct = DistinctFrames.of(episodes)
    for e in episodes:
        rebuilt = distinct.frames[distinct.index[id(e)]]
        assert rebuilt.dtype == e.frames.dtype
        assert rebuilt.tobytes() == e.frames.tobytes()
    assert len({f.tobytes() for f in distinct.frames}) == len(distinct.frames)
    used = np.unique(np.concatenate(list(distinct.index.values())))
    assert (used == np.arange(len(distinct.frames))).all()
    return distinct


@given(
    st.sampled_from(
        [((), np.int64), ((4,), np.float32), ((2, 2), np.float64), ((3, 3, 3), np.uint8)]
    ),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(0, 1000),
)
@settings(builders.examples)
def test_distinct_frames_are_exact(kind, picks, seed):
    shape, dtype = kind
    pool = (np.random.default_rng(seed).normal(size=(6, *shape)) * 50).astype(dtype)
    distinct = assert_exact([StoredEpisode.of(pool[steps], True) for steps in picks])
    different = {pool[i].tobytes() for steps in picks for i in steps}
    assert len(distinct.frames) == len(different)


def test_frames_that_differ_in_one_pixel_or_one_bit_are_different():
    pixels = np.zeros((4, 84, 84, 3), np.uint8)
    pixels[1, 83, 83, 2] = 1
    pixels[2, 0, 0, 0] = 1
    assert len(assert_exact([StoredEpisode.of(pixels, True)]).frames) == 3
    floats = np.array([[1.0], [np.nextafter(1.0, 2.0)], [1.0]])
    assert len(assert_exact([StoredEpisode.of(floats, True)]).frames) == 2


def test_an_episode_named_twice_counts_once():
    (episode,) = numbered(1)
    distinct = assert_exact([episode, episode])
    assert len(distinct.frames) == 1
    assert list(distinct.index) == [id(episode)]


def test_padded_layout():
    frames = np.array([[0], [1], [2]], dtype=np.uint8)
    short, long = StoredEpisode.of(frames[[2]], True), StoredEpisode.of(frames[[0, 1, 0]], True)
    distinct = DistinctFrames.of([short, long])
    index, mask = distinct.padded([long, short])
    assert mask.tolist() == [[True, True, True], [True, False, False]]
    assert distinct.frames[index][mask].ravel().tolist() == [0, 1, 0, 2]
