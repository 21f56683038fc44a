import hashlib
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest

from rllib_conspec.tasks.orangetree import scene, script
from rllib_conspec.tasks.orangetree.backdrop import Backdrop
from rllib_conspec.tasks.orangetree.camera import AMBIENT, DIFFUSE, LIGHT
from rllib_conspec.tasks.orangetree.layout import KINDS
from rllib_conspec.tasks.orangetree.screen import SIZE, darker, unpack
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv


def play(variant="train", num_envs=6, seed=0, flat=True, steps=65):
    """Frames and views of games in which half of the actions are the script's."""
    envs = OrangeTreeVectorEnv(num_envs, variant=variant)
    rng = np.random.default_rng(seed)
    observations, _ = envs.reset(seed=seed)
    yield from ((o, envs.view(i)) for i, o in enumerate(observations))
    for _ in range(steps):
        clever = rng.random(num_envs) < 0.5
        actions = np.where(clever, script.actions(envs, flat), rng.integers(4, size=num_envs))
        observations, *_ = envs.step(actions)
        yield from ((o, envs.view(i)) for i, o in enumerate(observations))


backdrop = lru_cache(Backdrop)


def unpacked(words):
    out = np.empty((SIZE, SIZE, 3), np.uint8)
    unpack(words, out)
    return out


@pytest.mark.parametrize(("variant", "flat"), [("train", True), ("train", False), ("random", True)])
def test_the_picture_is_the_same_as_with_rays_through_every_pixel(cast_all, variant, flat):
    """No thing is cut off by a screen box that is too small, at any distance and height."""
    rows, colours = scene.geom_rows(), scene.geom_colours()
    seen = np.zeros(len(scene.BODIES), int)
    kept = {"raised": 0, "held": 0}
    for observation, view in play(variant, num_envs=7, flat=flat):
        geom, normal = cast_all(view)
        hit = geom >= 0
        for thing in view.things:
            if thing.colour is not None:
                colours[rows == thing.row] = thing.colour
            kept["held"] += thing.up > 0
        kept["raised"] += view.raised
        seen += np.bincount(rows[geom[hit]], minlength=len(seen))
        light = AMBIENT + DIFFUSE * np.maximum(normal[hit] @ np.array(LIGHT), 0)
        expected = np.minimum(colours[geom[hit]] * light[:, None], 255)
        assert (np.abs(observation[hit] - expected) < 1.001).all()
        # Elsewhere the room, with at most two shadows on it.
        words = backdrop(view.stage.room).paint(np.array(view.xy), view.heading, view.raised)
        rooms = [unpacked(w) for w in (words, darker(words), darker(darker(words)))]
        same = [(observation == room).all(axis=2) for room in rooms]
        assert (same[0] | same[1] | same[2])[~hit].all()
    # The games met everything there is to see.
    assert seen[list(range(len(KINDS)))].sum() > 10_000 and seen[scene.TREE] > 10_000
    assert seen[scene.FIRST_APPLE : scene.TREE].min() > 0 and seen[scene.ORANGE_TO_PICK] > 0
    assert kept["held"] > 3
    assert kept["raised"] > 1 or not flat


def test_only_objects_turn_black(cast_all):
    pairs = zip(play("train", 3), play("black", 3), strict=True)
    for (usual, view), (black, _) in pairs:
        geom, _ = cast_all(view)
        objects = (geom >= 0) & (scene.geom_rows()[geom] < len(KINDS))
        assert (black[objects] < 40).all()
        assert np.array_equal(black[~objects], usual[~objects])


def test_only_grey_walls_and_blue_floors_are_repainted(cast_all):
    pairs = zip(play("train", 3), play("room", 3), strict=True)
    for (usual, view), (other, _) in pairs:
        geom, _ = cast_all(view)
        things = geom >= 0
        assert np.array_equal(other[things], usual[things])
        changed = (other != usual).any(axis=2)
        if view.stage.name == "waiting room":
            assert not changed.any()
        else:
            # All that is below the horizon and no thing is floor or wall.
            assert changed[SIZE // 2 :][~things[SIZE // 2 :]].all()


def test_a_shadow_lies_under_a_thing():
    observation, view = next(play(num_envs=1, steps=0))
    words = backdrop(view.stage.room).paint(np.array(view.xy), view.heading, view.raised)
    shade = (observation == unpacked(darker(words))).all(axis=2)
    assert 20 < shade.sum() < 2000
    assert not shade[: SIZE // 2].any()


def digest():
    games = [play(variant, num_envs=2, steps=60) for variant in ("train", "random")]
    frames = b"".join(observation.tobytes() for game in games for observation, _ in game)
    return hashlib.sha256(frames).hexdigest()


def test_another_process_sees_the_same_pixels():
    code = f"import runpy; print(runpy.run_path({__file__!r})['digest']())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == digest()
