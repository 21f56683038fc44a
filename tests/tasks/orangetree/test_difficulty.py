"""How hard the game is for a policy that acts at random."""

import numpy as np
import pytest

from rllib_conspec.tasks.orangetree.game import Games

EPISODES = 10_000


@pytest.fixture(scope="module")
def totals():
    """Share of random episodes in which each event happened."""
    game = Games(EPISODES)
    for i in range(EPISODES):
        game.seed(i, i)
    game.restart(np.arange(EPISODES))
    rng = np.random.default_rng(0)
    happened = {}
    over = np.zeros(EPISODES, bool)
    for _ in range(game.last_step):
        events = game.advance(rng.integers(4, size=EPISODES), np.zeros(EPISODES, bool))
        for name, who in events.items():
            happened[name] = happened.get(name, False) | (who & ~over)
        over |= events["orange_picked"]
    return {name: who.mean() for name, who in happened.items()}


def test_success_is_rare_but_not_too_rare(totals):
    assert 0.035 < totals["orange_picked"] < 0.06


def test_half_of_the_episodes_take_an_object_and_either_is_as_likely(totals):
    assert 0.4 < totals["flat_taken"] + totals["other_taken"] < 0.6
    assert abs(totals["flat_taken"] - totals["other_taken"]) < 0.02


def test_apples_are_met_now_and_then(totals):
    assert 0.2 < totals["apple_taken"] < 0.9
