import numpy as np
import pytest

from rllib_conspec.tasks import noise
from rllib_conspec.tasks.orangetree import placement, scene
from rllib_conspec.tasks.orangetree.layout import (
    AGENT_RADIUS,
    FLAT,
    OBJECT_ROOM_START,
    STAND,
    TOUCH,
    TREE_BLOCK,
    stages,
)

ROWS = 4000


@pytest.fixture
def u():
    return np.random.default_rng(0).random((ROWS, placement.DRAWS))


def length(difference):
    return np.sqrt((difference**2).sum(axis=-1))


def test_objects_are_one_flat_and_one_other_in_any_colours_on_any_side(u):
    drawn = placement.objects(u)
    assert FLAT[drawn.kind[:, 0]].all() and not FLAT[drawn.kind[:, 1]].any()
    pairs, counts = np.unique(drawn.kind, axis=0, return_counts=True)
    assert len(pairs) == 4 and counts.min() > ROWS / 4 - 150
    colours, counts = np.unique(drawn.colour, axis=0, return_counts=True)
    assert len(colours) == 36 and counts.min() > 60
    sides = np.sign(drawn.xy[..., 0])
    assert (sides[:, 0] == -sides[:, 1]).all()
    assert abs(sides[:, 0].mean()) < 0.06


def test_objects_begin_out_of_touch_apart_and_in_view(u):
    drawn = placement.objects(u)
    relative = drawn.xy - np.array(OBJECT_ROOM_START)
    assert length(relative).min() > TOUCH
    assert length(drawn.xy[:, 0] - drawn.xy[:, 1]).min() >= 1.5
    assert (np.abs(relative[..., 0]) < 0.8 * relative[..., 1]).all()


def test_things_and_their_shadows_are_inside_their_rooms(u):
    rooms = [np.array(stage.room.half) for stage in stages()]
    reach = max(body.shadow for body in scene.BODIES[:4])
    assert (np.abs(placement.objects(u).xy) + reach < rooms[0]).all()
    apples = placement.apples(u[:, :2], stages()[1].room.half)
    assert (np.abs(apples) + scene.BODIES[scene.FIRST_APPLE].shadow < rooms[1]).all()
    trunk, place, _ = placement.tree(u)
    assert (np.abs(trunk) + scene.BODIES[scene.TREE].shadow < rooms[2]).all()
    assert (np.abs(place) + reach < rooms[2]).all()


def test_the_place_under_the_tree_can_be_reached_but_not_at_once(u):
    trunk, place, _ = placement.tree(u)
    start = np.array(stages()[2].room.start)
    # The trunk does not cover it, the wall is not in the way, one step is not enough.
    assert length(trunk - place).min() > TREE_BLOCK
    assert (np.abs(place) < np.array(stages()[2].room.half) - AGENT_RADIUS).all()
    assert length(place - start).min() > STAND


def test_a_row_does_not_depend_on_the_others(u):
    some = u[5:9]
    assert np.array_equal(placement.objects(u).xy[5:9], placement.objects(some).xy)
    for whole, part in zip(placement.tree(u), placement.tree(some), strict=True):
        assert np.array_equal(whole[5:9], part)


def test_numbers_are_uniform():
    words = noise.episode_words(np.arange(500, dtype=np.uint64), np.zeros(500, int))
    numbers = placement.uniform(words, noise.places(1, 20)[np.zeros(500, int)])
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.bincount((numbers * 10).astype(int).ravel(), minlength=10)
    assert np.all(np.abs(counts - 1000) < 150)
