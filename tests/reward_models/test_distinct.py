"""Equal frames are found exactly."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.distinct import MUCH, DistinctFrames


def episode_of(frames: np.ndarray) -> Episode:
    """An episode whose steps led to these frames."""
    nothing = np.zeros(len(frames), np.float32)
    return Episode(np.concatenate([frames[:1], frames]), nothing, nothing)


def assert_exact(episodes):
    distinct = DistinctFrames.of(episodes)
    for e in episodes:
        rebuilt = distinct.frames[distinct.index[id(e)]]
        assert rebuilt.dtype == e.frames.dtype
        assert rebuilt.tobytes() == e.frames.tobytes()
    assert len({f.tobytes() for f in distinct.frames}) == len(distinct.frames)
    used = np.unique(np.concatenate(list(distinct.index.values())))
    assert (used == np.arange(len(distinct))).all()
    assert len(distinct) == len(distinct.frames) and distinct.shape == distinct.frames.shape[1:]
    return distinct


@given(
    st.sampled_from(
        [((), np.int64), ((4,), np.float32), ((2, 2), np.float64), ((3, 3, 3), np.uint8)]
    ),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(0, 1000),
)
def test_distinct_frames_are_exact(kind, picks, seed):
    shape, dtype = kind
    pool = (np.random.default_rng(seed).normal(size=(6, *shape)) * 50).astype(dtype)
    distinct = assert_exact([episode_of(pool[steps]) for steps in picks])
    different = {pool[i].tobytes() for steps in picks for i in steps}
    assert len(distinct.frames) == len(different)


def test_frames_that_differ_in_one_pixel_or_one_bit_are_different():
    pixels = np.zeros((4, 84, 84, 3), np.uint8)
    pixels[1, 83, 83, 2] = 1
    pixels[2, 0, 0, 0] = 1
    assert len(assert_exact([episode_of(pixels)]).frames) == 3
    floats = np.array([[1.0], [np.nextafter(1.0, 2.0)], [1.0]])
    assert len(assert_exact([episode_of(floats)]).frames) == 2


def test_an_episode_named_twice_counts_once():
    episode = episode_of(np.full((2, 3), 7, np.uint8))
    distinct = assert_exact([episode, episode])
    assert len(distinct.frames) == 1
    assert list(distinct.index) == [id(episode)]


def test_padded_layout():
    frames = np.array([[0], [1], [2]], dtype=np.uint8)
    short, long = episode_of(frames[[2]]), episode_of(frames[[0, 1, 0]])
    distinct = DistinctFrames.of([short, long])
    index, mask = distinct.padded([long, short])
    assert mask.tolist() == [[True, True, True], [True, False, False]]
    assert distinct.frames[index][mask].ravel().tolist() == [0, 1, 0, 2]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(1, 9),
    st.sets(st.integers(0, 99), min_size=1),
)
def test_packed_episodes_are_read_in_pieces_and_in_part(picks, size, wanted):
    pool = np.random.default_rng(0).integers(0, 255, (10, 3, 2)).astype(np.uint8)
    plain = [episode_of(pool[steps]) for steps in picks]
    whole = DistinctFrames.of(plain).frames
    distinct = DistinctFrames.of([e.packed() for e in plain])
    pieces = list(distinct.pieces(size))
    assert all(len(piece) == size for piece in pieces[:-1]) and 1 <= len(pieces[-1]) <= size
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    positions = np.array(sorted({w % len(whole) for w in wanted}))
    np.testing.assert_array_equal(distinct.take(positions), whole[positions])


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def many_frames() -> list[Episode]:
    """Episodes of more than threads are for, of which each has some frames of the one before."""
    pool = np.random.default_rng(0).integers(0, 255, (400, 84, 84, 3)).astype(np.uint8)
    episodes = [episode_of(pool[begin : begin + 60]) for begin in range(0, 340, 40)]
    assert sum(e.frames.nbytes for e in episodes) > MUCH
    return episodes


def test_many_frames_are_read_side_by_side_into_their_places(three_threads):
    episodes = many_frames()
    distinct = assert_exact([e.packed() for e in episodes])
    np.testing.assert_array_equal(distinct.frames, DistinctFrames.of(episodes).frames)


def test_an_episode_that_cannot_be_read_is_an_error_in_any_thread(three_threads):
    episodes = [e.packed() for e in many_frames()]
    episodes[4] = replace(episodes[4], observations=b"torn")
    with pytest.raises(RuntimeError):
        _ = DistinctFrames.of(episodes).frames


def test_an_episode_without_a_frame_of_its_own_is_not_unpacked():
    frames = np.arange(12, dtype=np.uint8).reshape(4, 3)
    first, second = episode_of(frames), episode_of(frames[[1, 3]]).packed()
    distinct = DistinctFrames.of([first, replace(second, observations=b"torn")])
    np.testing.assert_array_equal(distinct.frames, frames)
