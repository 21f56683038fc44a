import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.keys.layout import (
    DOWN,
    LEFT,
    NOWHERE,
    RIGHT,
    UP,
    Room,
    episode_steps,
    stages,
)


@pytest.mark.parametrize(("keys", "steps"), [(1, 65), (2, 125), (3, 185), (4, 245)])
@pytest.mark.parametrize("conjunctive", [False, True])
def test_episode_lengths(keys, steps, conjunctive):
    assert episode_steps(stages(keys, conjunctive)) == steps


def test_stage_lengths():
    lengths = [(stage.name, stage.steps) for stage in stages(3)]
    assert lengths == [
        ("key room 1", 10),
        ("waiting room 1", 45),
        ("key room 2", 15),
        ("waiting room 2", 45),
        ("key room 3", 15),
        ("waiting room 3", 45),
        ("exit", 10),
    ]


def test_doors_of_the_sequential_game_ask_for_the_previous_key():
    assert [s.opened_by for s in stages(3) if not s.waiting] == [(), (1,), (2,), (3,)]


def test_only_the_last_door_of_the_conjunctive_game_asks_for_keys():
    assert [s.opened_by for s in stages(3, True) if not s.waiting] == [(), (), (), (1, 2, 3)]
    assert all(s.room.door == NOWHERE for s in stages(3, True) if not s.exit)


@pytest.mark.parametrize("keys", [0, 5, -1, 2.0, "2", None])
def test_wrong_number_of_keys_is_refused(keys):
    with pytest.raises(OptionError, match="keys: must be 1 to 4"):
        stages(keys)


def test_walls_and_edges_hold_the_agent():
    room = Room.from_map("A.... .#... ..... ..... .....")
    assert room.step(0, UP) == 0
    assert room.step(0, LEFT) == 0
    assert room.step(0, RIGHT) == 1
    assert room.step(1, DOWN) == 1
    assert room.step(4, RIGHT) == 4
    assert room.step(24, DOWN) == 24


def test_a_map_of_another_size_is_refused():
    with pytest.raises(ValueError, match="25 cells"):
        Room.from_map("A...")
