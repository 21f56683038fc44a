import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.tasks.orangetree import scene, script
from rllib_conspec.tasks.orangetree.game import Games
from rllib_conspec.tasks.orangetree.layout import (
    AGENT_RADIUS,
    BACK,
    BLOCK,
    FLAT,
    FORWARD,
    FORWARDS,
    KINDS,
    NUM_APPLES,
    STAND,
    TOUCH,
    TREE_BLOCK,
    TURN_LEFT,
    TURN_RIGHT,
    VARIANTS,
)


def games(seeds, variant="train"):
    game = Games(len(seeds), variant)
    for i, seed in enumerate(seeds):
        game.seed(i, seed)
    game.restart(np.arange(len(seeds)))
    return game


def advance(game, actions):
    return game.advance(np.asarray(actions), np.zeros(game.count, bool))


def follow(game, policy, steps):
    """Let ``policy(view)`` play; returns all events as (step, game, name)."""
    happened = []
    for _ in range(steps):
        actions = [policy(game.view(i)) for i in range(game.count)]
        for name, who in advance(game, actions).items():
            happened += [(int(game.t[i]), int(i), name) for i in np.flatnonzero(who)]
    return happened


def objects(view):
    return [thing for thing in view.things if thing.row < len(KINDS)]


def distance(view, thing):
    return np.hypot(view.xy[0] - thing.x, view.xy[1] - thing.y)


def idle(_view):
    return TURN_LEFT


def test_actions_walk_a_metre_or_turn_30_degrees_and_walls_hold_the_agent():
    game = games([0])
    follow(game, idle, 15)
    steps = [FORWARD, TURN_LEFT, FORWARD, TURN_RIGHT, TURN_RIGHT, BACK]
    places = [(0, 1), (0, 1), (-0.5, 1 + 0.75**0.5), None, (-0.5, 1 + 0.75**0.5), (-1, 1)]
    headings = [0, 1, 1, 0, 11, 11]
    for action, place, heading in zip(steps, places, headings, strict=True):
        advance(game, [action])
        assert game.view(0).heading == heading
        assert place is None or game.view(0).xy == pytest.approx(place)
    for _ in range(12):
        advance(game, [FORWARD])
    assert game.view(0).xy == pytest.approx((4.2, 4.2))


@pytest.mark.parametrize("flat", [True, False])
def test_what_is_touched_first_is_taken_and_only_that(flat):
    game = games(range(30))
    kinds = [{t.row for t in objects(game.view(i))} for i in range(30)]
    happened = follow(game, lambda view: script.action(view, flat), 8)
    name = "flat_taken" if flat else "other_taken"
    assert sorted(i for _, i, n in happened if n == name) == list(range(30))
    assert len(happened) == 30
    # Then the other one: it cannot be taken any more, and is in the way.
    happened = follow(game, lambda view: _to_what_is_left(view), 6)
    assert happened == []
    for i in range(30):
        view = game.view(i)
        (left,) = objects(view)
        assert kinds[i] == {left.row, view.carried}
        assert FLAT[view.carried] == flat
        assert distance(view, left) > BLOCK


def _to_what_is_left(view):
    (left,) = [t for t in objects(view) if not t.up]
    return script.towards(view, left.x, left.y)


def test_an_object_is_held_up_on_the_step_it_is_taken_and_never_again():
    game = games(range(20))
    for _ in range(15):
        before = [game.view(i).carried for i in range(20)]
        advance(game, [script.action(game.view(i)) for i in range(20)])
        for i in range(20):
            view = game.view(i)
            held = [t for t in objects(view) if t.up]
            if view.carried is not None and before[i] is None:
                assert [t.row for t in held] == [view.carried]
                ahead = np.array(view.xy) + 1.4 * FORWARDS[view.heading]
                assert (held[0].x, held[0].y) == pytest.approx(tuple(ahead))
            else:
                assert held == []


def test_touch_is_what_counts():
    game = games(range(40))
    for _ in range(10):
        before = [game.view(i) for i in range(40)]
        events = advance(game, [script.action(view) for view in before])
        for i in np.flatnonzero(events["flat_taken"]):
            (flat,) = [t for t in objects(before[i]) if FLAT[t.row]]
            assert distance(game.view(i), flat) < TOUCH <= distance(before[i], flat)


def test_apples_are_worth_nothing_and_grow_again():
    game = games(range(40))
    follow(game, idle, 15)
    eaten = 0
    for _ in range(39):
        before = [game.view(i) for i in range(40)]
        events = advance(game, [_to_an_apple(view) for view in before])
        eaten += events["apple_taken"].sum()
        assert not any(who.any() for name, who in events.items() if name != "apple_taken")
        for i, view in enumerate(before):
            now = game.view(i)
            assert len(now.things) == NUM_APPLES
            gone = set(view.things) - set(now.things)
            assert bool(gone) == events["apple_taken"][i]
    assert eaten > 100


def _to_an_apple(view):
    nearest = min(view.things, key=lambda thing: distance(view, thing))
    return script.towards(view, nearest.x, nearest.y)


def test_the_carried_object_lies_under_the_tree_below_the_orange():
    game = games(range(20))
    follow(game, lambda view: script.action(view, view.step % 2 == 0), 15)
    follow(game, idle, 40)
    for i in range(20):
        view = game.view(i)
        assert view.stage.name == "tree room" and view.step == 55
        (tree,) = [t for t in view.things if t.row == scene.TREE]
        (orange,) = [t for t in view.things if t.row == scene.ORANGE_TO_PICK]
        assert np.hypot(tree.x - orange.x, tree.y - orange.y) == pytest.approx(1.05)
        assert [t.row for t in objects(view)] == ([] if view.carried is None else [view.carried])
        assert all((t.x, t.y, t.up) == (orange.x, orange.y, 0) for t in objects(view))


def _to_the_orange(view):
    goals = [t for t in view.things if t.row == scene.ORANGE_TO_PICK]
    return script.towards(view, goals[0].x, goals[0].y) if goals else TURN_LEFT


def test_the_orange_is_picked_on_a_flat_object():
    game = games(range(30))
    follow(game, script.action, 55)
    picked = follow(game, _to_the_orange, 6)
    assert {i for _, i, name in picked if name == "orange_picked"} == set(range(30))
    assert {name for *_, name in picked} == {"orange_picked"}


def test_standing_on_a_flat_object_raises_the_eye_and_the_orange_is_gone():
    game = games([3])
    follow(game, script.action, 55)
    while not advance(game, [script.action(game.view(0))])["orange_picked"][0]:
        assert not game.view(0).raised
    view = game.view(0)
    assert view.raised
    assert scene.ORANGE_TO_PICK not in {t.row for t in view.things}


def test_the_orange_is_out_of_reach_from_a_ball_or_jack():
    game = games(range(30))
    follow(game, lambda view: script.action(view, False), 55)
    assert follow(game, _to_the_orange, 10) == []
    for i in range(30):
        view = game.view(i)
        (thing,) = objects(view)
        assert BLOCK < distance(view, thing) < BLOCK + 1.2
        assert not view.raised


def test_the_orange_is_out_of_reach_without_an_object():
    game = games(range(30))
    follow(game, idle, 55)
    nearest = np.full(30, np.inf)
    for _ in range(10):
        assert follow(game, _to_the_orange, 1) == []
        for i in range(30):
            (orange,) = [t for t in game.view(i).things if t.row == scene.ORANGE_TO_PICK]
            nearest[i] = min(nearest[i], distance(game.view(i), orange))
    # Nothing is in the way: the agent gets there, but it is too small.
    assert (nearest < STAND).all()


def test_the_step_that_changes_rooms_does_nothing_else():
    game = games(range(30))
    while game.t[0] < 14:
        advance(game, [idle(None)] * 30)
    # One step before the door whoever could touch an object now is moved to the next room instead.
    assert not any(who.any() for who in advance(game, [FORWARD] * 30).values())
    for i in range(30):
        view = game.view(i)
        assert (view.stage.name, view.xy, view.heading) == ("waiting room", (0, 0), 0)


def test_colours_and_walls_are_all_that_variants_change():
    views = {}
    for variant in VARIANTS:
        game = games(range(10), variant)
        seen = []
        for t in range(65):
            advance(game, [(FORWARD, TURN_LEFT, FORWARD, BACK)[(t + i) % 4] for i in range(10)])
            seen += [game.view(i) for i in range(10)]
        views[variant] = seen
    for usual, black, room, new in zip(*views.values(), strict=True):
        assert usual.things == room.things
        for other in (black, new):
            assert [t._replace(colour=None) for t in usual.things] == [
                t._replace(colour=None) for t in other.things
            ]
        assert usual.xy == black.xy == room.xy == new.xy
        assert usual.carried == black.carried == room.carried == new.carried


def test_random_colours_are_drawn_anew_for_every_episode_by_its_seed():
    game, same = games([5, 6], "random"), games([5, 6], "random")
    seen = []
    for _ in range(3):
        follow(same, idle, 1)
        colours = [{t.colour for t in objects(game.view(i))} for i in (0, 1)]
        assert colours == [{t.colour for t in objects(same.view(i))} for i in (0, 1)]
        # All stages of an episode, in the colours that it began with.
        rooms = [[game.view(i).stage.room] for i in (0, 1)]
        for stage_steps in (15, 40):
            follow(game, idle, stage_steps)
            for i in (0, 1):
                rooms[i].append(game.view(i).stage.room)
        follow(same, idle, 54)
        assert [r[-1] for r in rooms] == [same.view(i).stage.room for i in (0, 1)]
        for first, waiting, last in rooms:
            assert (first.wall, first.floor) == (last.wall, last.floor)
            assert first.wall != waiting.wall and first.floor != waiting.floor
        seen += [(*colours[i], rooms[i][0].wall, rooms[i][0].floor) for i in (0, 1)]
        for each in (game, same):
            each.restart(np.arange(2))
    assert len({colour for drawn in seen for colour in drawn}) == 4 * 6


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), clever=st.integers(0, 65), flat=st.booleans())
def test_rules_hold_for_any_actions(seed, clever, flat):
    """Follow the script for a while, then act at random: reaches every part of the game."""
    game = games([seed])
    actions = np.random.default_rng(seed).choice(4, size=65, p=(0.5, 0.1, 0.2, 0.2))
    schedule = np.repeat([0, 1, 2], [15, 40, 10])
    taken = []
    for step in range(1, 66):
        action = script.action(game.view(0), flat) if step <= clever else actions[step - 1]
        before = game.view(0)
        events = {name for name, who in advance(game, [action]).items() if who[0]}
        view = game.view(0)
        assert view.step == step
        assert view.stage == game.stages[schedule[min(step, 64)]]
        assert all(
            abs(p) <= h - AGENT_RADIUS for p, h in zip(view.xy, view.stage.room.half, strict=True)
        )
        taken += sorted(events & {"flat_taken", "other_taken"})
        assert len(taken) <= 1
        assert (view.carried is None) == (taken == [])
        if view.stage.name != "tree room" or step == 55:
            assert events <= {"flat_taken", "other_taken", "apple_taken"}
        else:
            (tree,) = [t for t in view.things if t.row == scene.TREE]
            assert distance(view, tree) >= min(TREE_BLOCK, distance(before, tree))
        if "orange_picked" in events:
            assert taken == ["flat_taken"] and view.raised
            break
