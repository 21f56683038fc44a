import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st
from rooms import Shows

from rllib_conspec.environments.observations import channels_of, is_picture, is_unbounded, shaped
from rllib_conspec.errors import OptionError

PICTURE = spaces.Box(0, 255, (7, 7, 3), np.uint8)
NUMBERS = spaces.Dict(
    {
        "speed": spaces.Box(-2, 2, (2,), np.float64),
        "door": spaces.Discrete(3),
        "hands": spaces.Tuple([spaces.MultiBinary(2), spaces.MultiDiscrete([2, 2])]),
    }
)
WIDTH = 2 + 3 + 2 + 4
BOTH = spaces.Dict({"image": PICTURE, "direction": spaces.Discrete(4), "mission": spaces.Text(9)})


def of_one(space, key=None):
    return shaped(Shows(space), key)


def of_many(space, key=None):
    """The same as if it were an environment's own vector form."""
    return shaped(SyncVectorEnv([lambda: Shows(space)] * 2), key)


def said(space, key=None):
    messages = []
    for shape in (of_one, of_many):
        if shape is of_many and not isinstance(space, spaces.Box | spaces.Dict):
            continue
        with pytest.raises(OptionError) as raised:
            shape(space, key)
        messages.append(str(raised.value))
    assert len(set(messages)) == 1 and "\n" not in messages[0]
    return messages[0]


def test_arrays_stay_what_they_are():
    env = Shows(PICTURE)
    assert shaped(env, None) is env


def test_everything_made_of_numbers_becomes_one_float32_vector():
    env = of_one(NUMBERS)
    assert env.observation_space.shape == (WIDTH,)
    assert env.observation_space.dtype == np.float32
    inner = Shows(NUMBERS)
    raw, _ = inner.reset(seed=3)
    flat, _ = env.reset(seed=3)
    assert flat.dtype == np.float32 and env.observation_space.contains(flat)
    assert flat.tolist() == spaces.flatten(NUMBERS, raw).astype(np.float32).tolist()
    assert of_one(spaces.Discrete(5)).reset(seed=0)[0].sum() == 1
    assert of_one(spaces.Box(-1, 1, ())).reset(seed=0)[0].shape == (1,)


def test_own_vector_forms_are_shaped_in_the_same_way():
    many = of_many(NUMBERS)
    assert many.single_observation_space == of_one(NUMBERS).observation_space
    observations, _ = many.reset(seed=3)
    assert observations.shape == (2, WIDTH) and many.observation_space.contains(observations)
    for index, observation in enumerate(observations):
        assert np.array_equal(observation, of_one(NUMBERS).reset(seed=3 + index)[0])
    taken = of_many(BOTH, "image")
    assert taken.single_observation_space == PICTURE
    observations, _ = taken.reset(seed=3)
    assert np.array_equal(observations[1], of_one(BOTH, "image").reset(seed=4)[0])


def test_one_entry_of_a_dict():
    assert of_one(BOTH, "image").observation_space == PICTURE
    assert of_one(BOTH, "direction").observation_space.shape == (4,)
    assert of_one(spaces.Dict({"all": NUMBERS}), "all").observation_space.shape == (WIDTH,)


def test_pictures_and_texts_among_others_are_refused_with_the_way_out():
    assert said(BOTH) == (
        "observation_key: observations are a Dict of direction, image, mission; set the one to "
        "use, for example observation_key: image."
    )
    assert "Did you mean" in said(BOTH, "imag") and "direction, image, mission" in said(
        BOTH, "imag"
    )
    assert said(BOTH, "mission").startswith('observation_key: observation "mission"')
    assert said(PICTURE, "image").startswith("observation_key: the observations of this env")
    assert said(spaces.Text(5)).startswith("env: the observations of this environment cannot")
    assert "(Tuple)" in said(spaces.Tuple([PICTURE, spaces.Discrete(2)]))
    assert said(spaces.Sequence(spaces.Discrete(2))).startswith("env: ")


@pytest.mark.parametrize(
    ("shape", "channels"),
    [
        ((84, 84, 3), "last"),
        ((5, 5, 3), "last"),
        ((4, 84, 84), "first"),
        ((1, 20, 30), "first"),
        ((3, 3, 3), ""),
        ((4, 84, 4), ""),
        ((84, 4, 84), ""),
        ((7,), "last"),
        ((3, 84), "last"),
    ],
)
def test_channels_are_the_smallest_side(shape, channels):
    assert channels_of(shape) == channels


@given(st.tuples(*[st.integers(1, 99)] * 3))
def test_channel_order_is_symmetric(shape):
    swapped = {"first": "last", "last": "first", "": ""}
    assert channels_of(shape[::-1]) == swapped[channels_of(shape)]


def test_what_a_picture_is():
    assert is_picture(PICTURE) and is_picture(spaces.Box(0, 9, (8, 8), np.int64))
    assert not is_picture(spaces.Box(0, 1, (8, 8))) and not is_picture(spaces.Box(0, 9, (8,), int))
    assert not is_picture(gym.spaces.Discrete(3))


@pytest.mark.parametrize(
    ("space", "unbounded"),
    [
        (spaces.Box(-np.inf, np.inf, (3,)), True),
        (spaces.Box(np.array([-1.0, -1.0]), np.array([1.0, np.inf]), dtype=np.float64), True),
        (spaces.Box(-1, 1, (3,)), False),
        (spaces.Box(0, 255, (5, 5, 3), np.uint8), False),
        (spaces.Box(-np.inf, np.inf, (5, 5, 3)), False),  # a picture: `ranges` has its rule
    ],
)
def test_vectors_without_bounds(space, unbounded):
    assert is_unbounded(space) is unbounded
