import itertools

import numpy as np
import pytest
from odd_player import Machine

from rllib_conspec.unity.games import Games
from rllib_conspec.unity.messages import AgentAction, wrap


@pytest.fixture
def agents():
    return wrap().unity_output.rl_output.agentInfos["a"].value


def games(count=2):
    return Games(Machine(count, "discrete"), itertools.count(100), "float", False)


def summary(agents):
    """(id, clock, reward, done) of each agent."""
    clocks = [np.frombuffer(a.observations[1].float_data.data, np.float32)[0] for a in agents]
    return [(a.id, int(c), a.reward, a.done) for a, c in zip(agents, clocks, strict=True)]


def act(playing, agents, *actions, at_once):
    playing.step([AgentAction(discrete_actions=[a]) for a in actions], agents, at_once)
    return summary(agents)


def test_a_finished_game_is_back_with_the_next_step(agents):
    playing = games()
    playing.begin(None, agents)
    assert summary(agents) == [(102, 0, 0, False), (103, 0, 0, False)]
    for _ in range(3):
        act(playing, agents, 0, 0, at_once=False)
    assert playing.finished == []
    assert act(playing, agents, 0, 0, at_once=False) == [(102, 4, 4, True), (103, 4, 4, False)]
    assert agents[0].max_step_reached
    assert playing.finished == [{"Return": 10.0}]
    # Only the second one is asked for an action, and gets the one action that is sent.
    assert act(playing, agents, 3, at_once=False) == [(104, 0, 0, False), (103, 5, 5, True)]
    shown = np.frombuffer(agents[1].observations[1].float_data.data, np.float32)
    assert shown.tolist() == [5, 3, 3]


def test_or_at_once_under_a_new_id_as_unity_does_it(agents):
    playing = games()
    playing.begin(None, agents)
    for _ in range(3):
        act(playing, agents, 0, 0, at_once=True)
    after = act(playing, agents, 0, 0, at_once=True)
    assert after == [(102, 4, 4, True), (103, 4, 4, False), (104, 0, 0, False)]
    # Actions come in the order in which agents were presented: 103, then 104.
    after = act(playing, agents, 1, 2, at_once=True)
    assert after == [(104, 1, 1, False), (103, 5, 5, True), (105, 0, 0, False)]
    shown = [np.frombuffer(a.observations[1].float_data.data, np.float32)[1] for a in agents]
    assert shown == [2, 1, 0]


def test_infos_go_by_agent_id(agents):
    playing = games()
    playing.begin(None, agents)
    act(playing, agents, 0, 0, at_once=False)
    assert playing.events == {}
    act(playing, agents, 0, 0, at_once=False)
    assert playing.events == {"rang": {102: 2, 103: 2}}
    playing.begin(None, agents)
    assert playing.events == {}
    assert [agent.id for agent in agents] == [104, 105]
