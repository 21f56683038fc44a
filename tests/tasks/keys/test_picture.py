import numpy as np
import pytest

from rllib_conspec.tasks.keys.layout import stages
from rllib_conspec.tasks.keys.picture import AGENT, APPLE, stage_pictures
from rllib_conspec.tasks.keys.script import optimal_actions
from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv

UP, DOWN, LEFT, RIGHT = range(4)


def test_keys_doors_and_rooms_can_be_told_apart():
    pictures = stage_pictures(stages(4))
    rooms = [number for number, stage in enumerate(stages(4)) if not stage.waiting]
    assert len(np.unique(pictures[rooms, 0, 0].reshape(len(rooms), -1), axis=0)) == len(rooms)
    colours = np.unique(pictures.reshape(-1, 3), axis=0)
    # 4 keys, 4 doors, 3 floors, the wall.
    assert len(colours) == 12
    assert AGENT not in map(tuple, colours.tolist())
    assert APPLE not in map(tuple, colours.tolist())


def test_key_and_door_vanish_each_on_its_own():
    room = stages(2)[2].room
    pictures = stage_pictures(stages(2))[2]
    floor = pictures[1, 1, 0].tolist()
    assert pictures[0, 1, room.key].tolist() != floor
    assert pictures[0, 1, room.door].tolist() == floor
    assert pictures[1, 0, room.key].tolist() == floor
    assert pictures[1, 0, room.door].tolist() != floor


@pytest.mark.parametrize("conjunctive", [False, True])
def test_the_picture_does_not_show_what_the_agent_holds(conjunctive):
    envs = MultiKeyToDoorVectorEnv(2, keys=2, conjunctive=conjunctive, num_apples=0)
    envs.reset(seed=0)
    with_key = optimal_actions(2, conjunctive)[:55]
    without_key = [DOWN, UP] * 5 + with_key[10:]
    for actions in zip(with_key, without_key, strict=True):
        observations, *_ = envs.step(np.array(actions))
        if envs.view(0).stage.waiting:
            assert np.array_equal(*observations)
    assert [envs.view(i).held for i in (0, 1)] == [(1,), ()]
    # In the next room too, as long as both do what both can do.
    for action in [LEFT, UP, DOWN, RIGHT]:
        observations, *_ = envs.step(np.array([action, action]))
        assert np.array_equal(*observations)
