import numpy as np
import pytest
from direct import DirectPlayer
from odd_player import Deaf, EndsAlone, Machine

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client.crew import Crew
from rllib_conspec.unity.client.faults import PlayerHangs
from rllib_conspec.unity.player.serving import Service

NOBODY = np.zeros(2, bool)


def crew(kind=Service, size=2, agents=2, behavior="", **options):
    player = DirectPlayer(kind(lambda _: Machine(agents, "discrete"), "Machine"), **options)
    return Crew(player, player.events, behavior, size), player


def clocks(observations):
    return observations["gauge"][:, 0].astype(int).tolist()


def play(crew, count, action=1):
    """Step ``count`` times; clocks, rewards, ends and infos of each step."""
    begins, steps = NOBODY, []
    for _ in range(count):
        step = crew.play(np.array([action, action]), begins)
        begins = step.terminated | step.truncated
        steps.append(
            (clocks(step.observations), step.rewards.tolist(), begins.tolist(), step.infos)
        )
    return steps


def test_episodes_end_and_begin_as_in_the_environment_itself():
    """Environment i is truncated after 4 + i steps; its reward is its clock."""
    playing, _ = crew()
    assert clocks(playing.begin()) == [0, 0]
    steps = play(playing, 12)
    reference = Machine(2, "discrete")
    reference.reset()
    for clock, rewards, over, infos in steps:
        observations, paid, _, truncated, expected = reference.step(np.array([1, 1]))
        assert (clock, rewards) == (clocks(observations), paid.tolist())
        assert over == truncated.tolist()
        assert {k: v.tolist() for k, v in infos.items()} == {
            k: v.tolist() for k, v in expected.items()
        }
    assert [clock for clock, *_ in steps][3:8] == [[4, 4], [0, 5], [1, 0], [2, 1], [3, 2]]


def test_a_unity_build_takes_one_step_that_nobody_sees():
    """It begins the next episode at once, while others go on: the first observation is its second.

    Nothing is lost where all end together.
    """
    playing, _ = crew(Deaf)
    playing.begin()
    steps = play(playing, 11)
    assert [clock for clock, *_ in steps] == [
        *([1, 1], [2, 2], [3, 3], [4, 4]),
        [1, 5],  # the first one begins, with the hidden step behind it
        [2, 1],
        *([3, 2], [4, 3]),
        [1, 4],
        [2, 5],
        [3, 1],
    ]
    assert [rewards for _, rewards, *_ in steps][3:6] == [[4, 4], [0, 5], [2, 0]]
    assert [over for _, _, over, _ in steps][3:5] == [[True, False], [False, True]]
    # Where the only agent ends there is nothing to wait for.
    alone, _ = crew(Deaf, size=1, agents=1)
    alone.begin()
    begins, seen = np.zeros(1, bool), []
    for _ in range(7):
        step = alone.play(np.array([0]), begins)
        begins = step.truncated
        seen += clocks(step.observations)
    assert seen == [1, 2, 3, 4, 0, 1, 2]


def test_an_end_that_comes_alone_is_waited_for():
    playing, player = crew(EndsAlone)
    playing.begin()
    before = player.exchanged
    steps = play(playing, 4)
    assert steps[-1][:3] == ([4, 4], [4, 4], [True, False])
    assert player.exchanged - before == 5


def test_spare_agents_stand_still():
    playing, _ = crew(size=1, agents=3)
    assert playing.found >= 1
    assert clocks(playing.begin()) == [0]
    step = playing.play(np.array([2]), np.zeros(1, bool))
    assert step.observations["gauge"].tolist() == [[1, 2, 2]]


def test_agents_are_counted_and_the_behaviour_is_chosen():
    playing, _ = crew(size=2, agents=3, behavior="Machine")
    assert playing.found == 3
    with pytest.raises(OptionError, match=r"behavior: the player has no 'Machin'.*Machine"):
        crew(behavior="Machin")


def test_agents_that_are_never_asked_for_an_action_are_a_hang():
    class Silent(Service):
        silent = False

        def answer(self, command):
            message = super().answer(command)
            if self.silent:
                del message.unity_output.rl_output.agentInfos[self._name].value[1:]
            return message

    playing, player = crew(Silent, timeout=0.2)
    playing.begin()
    player._service.silent = True
    with pytest.raises(PlayerHangs, match=r"no action of agents \[1\]"):
        playing.play(np.array([0, 0]), NOBODY)


def test_a_player_without_agents_cannot_be_trained():
    class Empty(Service):
        def answer(self, command):
            message = super().answer(command)
            del message.unity_output.rl_output.agentInfos[self._name].value[:]
            return message

    with pytest.raises(OptionError, match="no agents"):
        crew(Empty)
