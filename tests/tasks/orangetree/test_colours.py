import numpy as np
import pytest

from rllib_conspec.tasks import noise
from rllib_conspec.tasks.orangetree import colours
from rllib_conspec.tasks.orangetree.layout import COLOURS, TREE_ROOM, WAITING_ROOM, stages

WORDS = noise.mix(np.arange(2000, dtype=np.uint64))
ROOMS = [stage.room for stage in stages()]


@pytest.fixture(scope="module")
def paints():
    return [colours.draw(word) for word in WORDS]


def redmean(one, other):
    """The published formula, one pair of colours at a time."""
    (r, g, b), (r2, g2, b2) = one, other
    mean = (r + r2) / 2
    weighted = (2 + mean / 256) * (r - r2) ** 2 + 4 * (g - g2) ** 2
    return (weighted + (2 + (255 - mean) / 256) * (b - b2) ** 2) ** 0.5


def test_the_distance_is_the_published_one():
    some = np.random.default_rng(0).integers(256, size=(2, 50, 3)).astype(float)
    expected = [redmean(one, other) for one, other in zip(*some.tolist(), strict=True)]
    assert colours.distance(*some) == pytest.approx(expected)
    assert redmean((0, 0, 0), (255, 255, 255)) == pytest.approx(765, abs=1)


def test_everything_is_new(paints):
    for paint in paints:
        walls, floors = zip(paint.room, paint.waiting, strict=True)
        pairs = [(new, old) for new in paint.objects for old in COLOURS.values()]
        pairs += [(new, room.wall) for new in walls for room in ROOMS]
        pairs += [(new, room.floor) for new in floors for room in ROOMS]
        assert all(redmean(*pair) >= colours.NEW for pair in pairs)


def test_objects_are_seen_before_wall_and_floor_and_walls_end_above_the_floor(paints):
    """On the darkest and on the lightest side, far away and near."""
    for paint in paints[:200]:
        wall, floor = shaded(paint.room[0], 0.6, 1.0), shaded(paint.room[1], 0.7, 1.06)
        waiting = [shaded(paint.waiting[0], 0.6, 1.0), shaded(paint.waiting[1], 0.7, 1.06)]
        objects = [shaded(colour, 0.66, 1.06) for colour in paint.objects]
        pairs = [(thing, behind) for thing in objects for behind in (wall, floor)]
        for one, other in [*pairs, (wall, floor), waiting]:
            assert min(redmean(a, b) for a in one for b in other) >= colours.VISIBLE


def shaded(colour, darkest, lightest):
    shades = np.linspace(darkest, lightest, 3)
    return [[shade * value for value in colour] for shade in shades]


def test_all_of_the_colour_cube_that_is_allowed_is_drawn_from(paints):
    """Every eighth of the cube, dark ones too, and for objects and rooms alike."""
    for drawn in (
        [colour for paint in paints for colour in paint.objects],
        *([paint.room[n] for paint in paints] for n in (0, 1)),
        *([paint.waiting[n] for paint in paints] for n in (0, 1)),
    ):
        eighth = (np.array(drawn) // 128) @ (4, 2, 1)
        counts = np.bincount(eighth, minlength=8) / len(drawn)
        assert counts.min() > 0.05
        assert (np.array(drawn).max(axis=1) < 40).any()


def test_the_word_of_an_episode_decides(paints):
    assert [colours.draw(word) for word in WORDS[:20]] == paints[:20]
    assert len(set(paints)) == len(paints)
    for paint in paints[:20]:
        assert len({*paint.objects, *paint.room, *paint.waiting}) == 6


def test_object_and_tree_room_look_alike_and_nothing_but_walls_and_floors_is_painted(paints):
    painted = paints[0].on(stages())
    for number, (new, old) in enumerate(zip(painted, stages(), strict=True)):
        wall, floor = paints[0].waiting if number == WAITING_ROOM else paints[0].room
        assert (new.room.wall, new.room.floor) == (wall, floor)
        assert (new.name, new.steps) == (old.name, old.steps)
        for name in ("half", "height", "above", "start"):
            assert getattr(new.room, name) == getattr(old.room, name)
    assert painted[0].room.wall == painted[TREE_ROOM].room.wall


def test_the_best_there_is_where_nothing_is_good_enough():
    """Cannot be seen in games: 48 tries have always been enough."""
    training = np.array([[0.0, 0.0, 0.0]])
    tries = np.array([[5.0, 5, 5], [30, 30, 30], [10, 10, 10]])
    assert colours._choose(tries, training).tolist() == [30, 30, 30]
    tries[2] = 250
    assert colours._choose(tries, training).tolist() == [250, 250, 250]
