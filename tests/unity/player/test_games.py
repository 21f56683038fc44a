import itertools

import numpy as np
from odd_player import Machine

from rllib_conspec.unity.messages import AgentAction, wrap
from rllib_conspec.unity.player.games import Games


def message():
    return wrap().unity_output.rl_output.agentInfos["a"].value


def games(count=2):
    return Games(Machine(count, "discrete"), itertools.count(100), "float", False)


def summary(agents):
    """(id, clock, action shown, reward, done) of each agent."""
    shown = [np.frombuffer(a.observations[1].float_data.data, np.float32) for a in agents]
    assert all(a.done == a.max_step_reached for a in agents)  # this game is only ever truncated
    rows = zip(agents, shown, strict=True)
    return [(a.id, int(x[0]), int(x[1]), a.reward, a.done) for a, x in rows]


def begin(playing):
    agents = message()
    playing.begin(None, agents)
    return summary(agents)


def act(playing, *actions, at_once):
    agents = message()
    playing.step([AgentAction(discrete_actions=[a]) for a in actions], agents, at_once)
    return summary(agents)


def test_a_finished_game_is_back_with_the_next_step():
    playing = games()
    assert begin(playing) == [(102, 0, 0, 0, False), (103, 0, 0, 0, False)]
    for _ in range(3):
        act(playing, 0, 0, at_once=False)
    assert playing.finished == []
    after = act(playing, 1, 2, at_once=False)
    assert after == [(102, 4, 1, 4, True), (103, 4, 2, 4, False)]
    assert playing.finished == [{"Return": 10.0}]
    # Only the second one is asked for an action, and gets the one action that is sent.
    after = act(playing, 3, at_once=False)
    assert after == [(104, 0, 0, 0, False), (103, 5, 3, 5, True)]


def test_or_at_once_under_a_new_id_as_unity_does_it():
    playing = games()
    begin(playing)
    for _ in range(3):
        act(playing, 0, 0, at_once=True)
    after = act(playing, 0, 0, at_once=True)
    assert after == [(102, 4, 0, 4, True), (103, 4, 0, 4, False), (104, 0, 0, 0, False)]
    # Actions come in the order in which agents were presented: 103, then 104.
    after = act(playing, 1, 2, at_once=True)
    assert after == [(104, 1, 2, 1, False), (103, 5, 1, 5, True), (105, 0, 0, 0, False)]


def test_infos_go_by_agent_id():
    playing = games()
    begin(playing)
    act(playing, 0, 0, at_once=False)
    assert playing.events == {}
    act(playing, 0, 0, at_once=False)
    assert playing.events == {"rang": {102: 2, 103: 2}}
    assert [agent for agent, *_ in begin(playing)] == [104, 105]
    assert playing.events == {}
