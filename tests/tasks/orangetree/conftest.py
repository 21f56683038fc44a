import mujoco
import numpy as np
import pytest

from rllib_conspec.tasks.orangetree import scene
from rllib_conspec.tasks.orangetree.layout import EYE, FORWARDS, RAISED, RIGHTS
from rllib_conspec.tasks.orangetree.screen import SIZE


@pytest.fixture(scope="session")
def cast_all():
    """A ray through every pixel, one after the other: what a camera without shortcuts hits."""
    model = scene.model()
    data = mujoco.MjData(model)
    across = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1

    def cast(view) -> tuple[np.ndarray, np.ndarray]:
        """Geom hit in each pixel of a ``View``, -1 for none, ``[84, 84]``, and normals."""
        data.mocap_pos[:] = (0, 0, -1000)
        for thing in view.things:
            lift = scene.BODIES[thing.row].lift + thing.up
            data.mocap_pos[thing.row] = (thing.x, thing.y, lift)
            half = np.pi * thing.heading / 12
            data.mocap_quat[thing.row] = (np.cos(half), 0, 0, np.sin(half))
        mujoco.mj_kinematics(model, data)
        rays = np.zeros((SIZE, SIZE, 3))
        rays[..., :2] = FORWARDS[view.heading] + across[None, :, None] * RIGHTS[view.heading]
        rays[..., 2] = -across[:, None]
        eye = np.array([*view.xy, EYE + RAISED * view.raised])
        count = SIZE * SIZE
        geom = np.empty(count, np.int32)
        depth, normal = np.empty(count), np.empty(count * 3)
        args = (None, True, -1, geom, depth, normal, count, 100.0)
        mujoco.mj_multiRay(model, data, eye, rays.ravel(), *args)
        return geom.reshape(SIZE, SIZE), normal.reshape(SIZE, SIZE, 3)

    return cast
