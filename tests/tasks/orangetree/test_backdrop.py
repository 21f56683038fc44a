import itertools

import mujoco
import numpy as np
import pytest

from rllib_conspec.tasks.orangetree.backdrop import Backdrop
from rllib_conspec.tasks.orangetree.layout import EYE, FORWARDS, RAISED, RIGHTS, Room, stages
from rllib_conspec.tasks.orangetree.screen import SIZE, unpack

WALL, FLOOR, ABOVE = range(3)


def picture(backdrop, xy, heading, raised=False):
    out = np.empty((SIZE, SIZE, 3), np.uint8)
    unpack(backdrop.paint(np.array(xy), heading, raised), out)
    return out


def cast_room(room, xy, heading, raised):
    """Which part of a room MuJoCo's rays hit, with walls and floor as boxes."""
    x, y = room.half
    high = room.height / 2
    walls = [(x + 1, 0, 1, y), (-x - 1, 0, 1, y), (0, y + 1, x, 1), (0, -y - 1, x, 1)]
    boxes = [f'<geom type="box" size="{x} {y} 1" pos="0 0 -1"/>']
    for p, q, a, b in walls:
        boxes.append(f'<geom type="box" size="{a} {b} {high}" pos="{p} {q} {high}"/>')
    xml = f"<mujoco><worldbody>{''.join(boxes)}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    across = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    rays = np.zeros((SIZE, SIZE, 3))
    rays[..., :2] = FORWARDS[heading] + across[None, :, None] * RIGHTS[heading]
    rays[..., 2] = -across[:, None]
    geom = np.empty(SIZE * SIZE, np.int32)
    eye = np.array([*xy, EYE + RAISED * raised])
    args = (None, True, -1, geom, np.empty(SIZE * SIZE), None, SIZE * SIZE, 100.0)
    mujoco.mj_multiRay(model, data, eye, rays.ravel(), *args)
    part = np.where(geom == 0, FLOOR, np.where(geom > 0, WALL, ABOVE))
    return part.reshape(SIZE, SIZE)


@pytest.mark.parametrize("heading", range(12))
@pytest.mark.parametrize("raised", [False, True])
def test_walls_floor_and_sky_are_where_rays_meet_them(heading, raised):
    # One pure colour each: shades do not change which channel is the brightest.
    rng = np.random.default_rng(heading)
    room = Room((3.5, 2.5), 1.9, (200, 0, 0), (0, 200, 0), (0, 0, 200), (0, 0))
    xy = rng.uniform(-1, 1, 2) * [3.2, 2.2]
    part = picture(Backdrop(room), xy, heading, raised).argmax(axis=2)
    assert np.array_equal(part, cast_room(room, xy, heading, raised))


def test_rooms_can_be_told_apart_and_pictures_change_with_every_step_and_turn():
    rooms = [Backdrop(stage.room) for stage in stages()]
    pictures = [picture(room, (0.2, 0.1), 1) for room in rooms]
    for one, other in itertools.combinations(pictures, 2):
        assert np.abs(one - other.astype(int)).mean() > 5
    moved = [((0.2, 0.1), 1), ((0.2, 1.1), 1), ((1.2, 0.1), 1), ((0.2, 0.1), 2), ((0.2, 0.1), 7)]
    assert len({picture(rooms[0], *place).tobytes() for place in moved}) == len(moved)
