import mujoco
import numpy as np
import pytest

from rllib_conspec.tasks.orangetree import scene
from rllib_conspec.tasks.orangetree.layout import KINDS, NUM_APPLES


def test_one_model_per_process_in_which_row_i_moves_body_i():
    model = scene.model()
    assert model is scene.model()
    assert model.nmocap == len(scene.BODIES)
    names = [model.body(1 + row).name for row in range(model.nmocap)]
    assert names == [body.name for body in scene.BODIES]
    assert model.body_mocapid[1:].tolist() == list(range(model.nmocap))
    assert tuple(names[: len(KINDS)]) == KINDS
    assert [n for n in names if n.startswith("apple")] == [f"apple {i}" for i in range(NUM_APPLES)]
    assert (names[scene.TREE], names[scene.ORANGE_TO_PICK]) == ("tree", "orange")


def surface_points(model, geom):
    """Points on a geom in its body's frame: the corners or the sphere that its shape needs."""
    rng = np.random.default_rng(geom)
    sphere = rng.normal(size=(2000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    size = model.geom_size[geom]
    shape = model.geom_type[geom]
    if shape == mujoco.mjtGeom.mjGEOM_SPHERE:
        points = sphere * size[0]
    elif shape == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        points = sphere * size
    elif shape == mujoco.mjtGeom.mjGEOM_CAPSULE:
        points = sphere * size[0] + np.sign(sphere[:, 2:]) * [0, 0, size[1]]
    elif shape == mujoco.mjtGeom.mjGEOM_CYLINDER:
        rim = sphere[:, :2] / np.linalg.norm(sphere[:, :2], axis=1, keepdims=True) * size[0]
        points = np.column_stack([rim, np.sign(sphere[:, 2]) * size[1]])
    else:
        points = np.sign(sphere) * size
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    return points @ rotation.reshape(3, 3).T + model.geom_pos[geom]


@pytest.mark.parametrize("row", range(len(scene.BODIES)))
def test_bodies_are_within_their_bounds_which_are_tight_and_stand_on_the_floor(row):
    model, body = scene.model(), scene.BODIES[row]
    points = [surface_points(model, g) for g in np.flatnonzero(scene.geom_rows() == row)]
    points = np.concatenate(points)
    height = points[:, 2] + body.lift
    away = np.hypot(points[:, 0], points[:, 1])
    inside = np.zeros(len(points), bool)
    for radius, low, high in body.bounds:
        inside |= (away < radius + 1e-6) & (height > low - 1e-6) & (height < high + 1e-6)
    assert inside.all()
    radius = max(radius for radius, _, _ in body.bounds)
    assert away.max() > radius - 0.06
    assert height.max() > max(high for _, _, high in body.bounds) - 0.06
    if body.name != "orange":
        assert abs(height.min()) < 0.01


def test_objects_are_painted_and_the_rest_has_colours():
    colours, rows = scene.geom_colours(), scene.geom_rows()
    assert (colours[rows < len(KINDS)] == 0).all()
    assert (colours[rows >= len(KINDS)].max(axis=1) > 0).all()
    assert colours[rows == scene.ORANGE_TO_PICK].tolist() == [list(scene.ORANGE)]
    tree = {tuple(colour) for colour in colours[rows == scene.TREE]}
    assert tree == {scene.BARK, scene.LEAVES, scene.ORANGE}


def test_a_heading_turns_a_thing_as_it_turns_the_agent():
    turns = scene.heading_quaternions()
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, np.array([0.0, 1.0, 0.0]), turns[3])
    assert np.allclose(turned, [-1, 0, 0])
