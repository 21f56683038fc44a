import numpy as np
import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.orangetree.layout import (
    FORWARDS,
    RIGHTS,
    VARIANTS,
    episode_steps,
    object_colours,
    stages,
)


def test_stage_lengths():
    lengths = [(stage.name, stage.steps) for stage in stages()]
    assert lengths == [("object room", 15), ("waiting room", 40), ("tree room", 10)]
    assert episode_steps(stages()) == 65


def test_headings_turn_left_from_north_by_30_degrees():
    assert FORWARDS[0].tolist() == [0, 1]
    assert FORWARDS[3].tolist() == [-1, 0]
    assert RIGHTS[0].tolist() == [1, 0]
    assert np.allclose((FORWARDS**2).sum(axis=1), 1)
    assert np.allclose((FORWARDS * np.roll(FORWARDS, 1, axis=0)).sum(axis=1), np.cos(np.pi / 6))


def test_grey_walls_and_blue_floor_become_pink_and_green_in_room():
    for number in (0, 2):
        usual, other = stages("train")[number].room, stages("room")[number].room
        assert usual.wall[0] == usual.wall[1] == usual.wall[2]
        assert max(usual.floor) == usual.floor[2]
        assert min(other.wall) == other.wall[1] and max(other.wall) == other.wall[0]
        assert max(other.floor) == other.floor[1]
    assert stages("train")[1] == stages("room")[1]
    assert stages("train") == stages("black")


def test_six_colours_or_black():
    assert len(np.unique(object_colours("train"), axis=0)) == 6
    assert np.array_equal(object_colours("train"), object_colours("room"))
    assert len(np.unique(object_colours("black"), axis=0)) == 1
    assert object_colours("black").max() < 40
    assert object_colours("black").shape == object_colours("train").shape


def test_an_unknown_variant_is_refused_with_a_hint():
    assert VARIANTS == ("train", "black", "room", "random")
    for use in (stages, object_colours):
        words = r'variant: .*train, black, room, random.*mean "black"'
        with pytest.raises(OptionError, match=words):
            use("balck")
