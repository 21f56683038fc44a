import numpy as np
import pytest
from gymnasium import spaces
from rooms import Shows, Walk

from rllib_conspec.environments import ranges
from rllib_conspec.environments.ranges import observation_range, played

BYTES = spaces.Box(0, 255, (7, 7, 3), np.uint8)
FLOATS = spaces.Box(-np.inf, np.inf, (7, 7, 3), np.float32)
VECTOR = spaces.Box(-np.inf, np.inf, (2,), np.float32)


def found(space, *values):
    """The range, when observations are filled with these values one after the other."""
    return observation_range(space, (np.full(space.shape, v, space.dtype) for v in values))


def test_bytes_that_stay_small_get_their_maximum():
    assert found(BYTES, 0, 3, 10, 2) == 10.0
    assert found(BYTES, 0, 200, 3) == 255.0
    assert found(BYTES, 0, 0) == 255.0
    assert found(spaces.Box(0, 2**31 - 1, (5, 5), np.int32), 0, 300) == 300.0


def test_nobody_plays_on_when_the_answer_is_known():
    seen = iter([np.full(BYTES.shape, v, np.uint8) for v in (200, 0, 1, 2)])
    assert observation_range(BYTES, seen) == 255.0
    assert len(list(seen)) == 2  # a reset and a step were looked at


def test_what_the_space_declares_counts():
    assert found(spaces.Box(0, 10, (7, 7, 3), np.uint8), 1, 2) == 10.0
    assert found(spaces.Box(0, 255, (7, 7, 3), np.float32), 1, 2) == 255.0
    assert found(spaces.Box(-1, 1, (7, 7, 3), np.float32), 0.1) == 1.0
    assert found(spaces.Box(0, 255, (7, 7, 3), np.int64), 1, 2) == 255.0


def test_pictures_of_floats():
    assert found(FLOATS, 0.2, 0.9) == 1.0
    assert found(FLOATS, 0.0) == 1.0
    assert found(FLOATS, 0.2, 31.4) == 32.0
    assert found(FLOATS, 0.2, np.nan, np.inf, -1234.0) == 1300.0


def test_vectors_are_left_alone_unless_they_are_large():
    assert found(VECTOR, 0.0) == 1.0
    assert found(VECTOR, 9.9, -10.0) == 1.0
    assert found(VECTOR, 3.0, -2001.0) == 2100.0
    assert found(spaces.Box(0, 255, (128,), np.uint8), 3, 130, 0) == 255.0


@pytest.mark.parametrize("value", [10.5, 11.0, 99.0, 99.5, 100.0, 101.0, 4.4e9])
def test_rounding_goes_up_to_two_digits(value):
    rounded = found(VECTOR, value)
    assert value <= rounded * (1 + 1e-6) and rounded <= value * 1.1
    assert float(f"{rounded:.1e}") == pytest.approx(rounded)


def test_play_is_random_the_same_every_time_and_resets_what_is_over():
    first = list(played(Walk(far=4)))
    assert len(first) == ranges.STEPS + 1
    assert np.array_equal(first, list(played(Walk(far=4))))
    assert np.abs(first).max() < 8  # a walk that is over begins anew
    assert not np.array_equal(first[0], first[-1])


def test_range_of_a_played_environment():
    space = spaces.Box(0, 255, (7, 7, 3), np.uint8)
    env = Shows(space, spaces.Box(0, 6, (7, 7, 3), np.uint8))
    assert observation_range(space, played(env)) == 6.0
