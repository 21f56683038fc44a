"""Episodes: what is asked of them, and that what is kept is one's own."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode, Summary


def episode(steps=3, shape=(2,), **values) -> Episode:
    rng = np.random.default_rng(0)
    return Episode(
        **{
            "observations": rng.normal(size=(steps + 1, *shape)),
            "actions": rng.integers(0, 3, steps),
            "rewards": np.arange(steps, dtype=np.float32),
            **values,
        }
    )


def test_frames_are_what_steps_led_to():
    e = episode(steps=3)
    assert len(e) == 3 and e.frames.shape == (3, 2)
    assert np.array_equal(e.frames[0], e.observations[1])
    assert np.shares_memory(e.frames, e.observations)


def test_summary_is_the_environments_own():
    assert episode(success=True).summary == Summary(3.0, 3, True)
    assert episode().summary.success is None


def test_judging_shares_the_arrays():
    e = episode(success=None, seed=7)
    judged = e.judged(True)
    assert judged.success is True and e.success is None and judged.seed == 7
    assert judged.observations is e.observations


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12), st.sampled_from("fiu"))
def test_digests_are_equal_exactly_where_observations_are(picks, kind):
    pool = {"f": [0.0, 1.0, 1.0 + 2e-16, -1.0], "i": [0, 1, 2, -1], "u": [0, 1, 254, 255]}[kind]
    dtype = {"f": np.float64, "i": np.int32, "u": np.uint8}[kind]
    observations = np.array([[pool[i], 5] for i in picks], dtype=dtype)
    digests = episode(len(picks) - 1, observations=observations).digests
    assert digests.shape == (len(picks),) and digests.dtype == np.uint64
    for i, a in enumerate(observations):
        for j, b in enumerate(observations):
            assert (digests[i] == digests[j]) == (a.tobytes() == b.tobytes())


def test_digests_of_pieces_of_a_larger_block_and_of_numbers():
    block = np.arange(24).reshape(4, 3, 2)
    piece = block[:, 1]  # not contiguous
    assert list(episode(observations=piece).digests) == list(
        episode(observations=piece.copy()).digests
    )
    assert len(set(episode(observations=np.array([4, 5, 4, 6])).digests)) == 3


def test_digests_are_computed_when_asked_for_and_then_carried_along():
    e = episode()
    assert "digests" not in e.__dict__ and "digests" not in e.kept().__dict__
    found = e.digests
    assert e.digests is found
    for copy in (e.kept(), pickle.loads(pickle.dumps(e))):
        assert np.array_equal(copy.__dict__["digests"], found)


def test_what_is_kept_is_ones_own_and_cannot_be_written():
    block = np.zeros((4, 10, 2))
    given_ = episode(
        observations=block[:, 3],
        outputs={"read": block[:3, 5]},
        events=((1, "key 1"),),
        info={"heavy": block},
        success=True,
        terminated=False,
        seed=3,
    )
    kept = given_.kept()
    for array in (kept.observations, kept.actions, kept.rewards, kept.outputs["read"]):
        assert array.base is None and array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    block[:] = 9
    assert not kept.observations.any() and not kept.outputs["read"].any()
    assert kept.info == {}
    assert (kept.events, kept.success, kept.terminated, kept.seed) == (
        ((1, "key 1"),),
        True,
        False,
        3,
    )
    assert given_.kept(outputs=False).outputs == {}
