import numpy as np
import pytest

from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.game import Games
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv


def play(flat, count=300):
    """One scripted episode in each of many games: how often each event happened, per game."""
    game = Games(count)
    for i in range(count):
        game.seed(i, i)
    game.restart(np.arange(count))
    totals = {}
    playing = np.ones(count, bool)
    for _ in range(game.last_step):
        actions = np.array([script.action(game.view(i), flat) for i in range(count)])
        for name, who in game.advance(actions, np.zeros(count, bool)).items():
            totals[name] = totals.get(name, 0) + (who & playing)
        playing &= totals["orange_picked"] == 0
    return totals


def test_the_script_takes_the_flat_object_and_picks_the_orange_in_every_episode():
    totals = play(flat=True)
    assert (totals["flat_taken"] == 1).all()
    assert (totals["orange_picked"] == 1).all()
    assert (totals["other_taken"] == 0).all()


def test_the_other_object_never_leads_to_the_orange():
    totals = play(flat=False, count=100)
    assert (totals["other_taken"] == 1).all()
    assert (totals["orange_picked"] == 0).all()


@pytest.mark.parametrize("count", [1, 3])
def test_actions_are_one_per_game(count):
    envs = OrangeTreeVectorEnv(count)
    envs.reset(seed=0)
    actions = script.actions(envs)
    assert actions.tolist() == [script.action(envs.view(i)) for i in range(count)]
