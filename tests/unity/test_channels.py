import json

from mlagents_envs.side_channel import IncomingMessage
from mlagents_envs.side_channel.engine_configuration_channel import EngineConfigurationChannel
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel
from mlagents_envs.side_channel.side_channel_manager import SideChannelManager
from mlagents_envs.side_channel.stats_side_channel import StatsSideChannel

from rllib_conspec.unity import channels


def hear(channel, said):
    channel.on_message_received(IncomingMessage(json.dumps(said).encode()))


def test_the_names_of_the_channels_are_those_of_mlagents_envs():
    assert EnvironmentParametersChannel().channel_id == channels.PARAMETERS
    assert StatsSideChannel().channel_id == channels.STATS


def test_a_player_reads_what_the_trainer_sends():
    parameters, events = EnvironmentParametersChannel(), channels.EventsChannel()
    engine = EngineConfigurationChannel()
    parameters.set_float_parameter("gravity", 9.75)
    parameters.set_uniform_sampler_parameters("wind", 0.0, 1.0, 3)
    engine.set_configuration_parameters(time_scale=20.0)
    events.greet()
    manager = SideChannelManager([parameters, engine, events])
    heard = list(channels.unpack(bytes(manager.generate_side_channel_messages())))
    assert [name for name, _ in heard] == [
        channels.PARAMETERS,
        channels.PARAMETERS,
        engine.channel_id,
        channels.EVENTS,
    ]
    assert channels.parameter(heard[0][1]) == ("gravity", 9.75)
    assert channels.parameter(heard[1][1]) is None
    assert json.loads(heard[3][1]) == {"hello": 1}


def test_the_trainer_reads_what_a_player_sends():
    stats, events = StatsSideChannel(), channels.EventsChannel()
    said = json.dumps({"events": {"won": {"7": True}}}).encode()
    data = channels.statistic("Return", 0.5) + channels.pack(channels.EVENTS, said)
    SideChannelManager([stats, events]).process_side_channel_message(data)
    assert [value for value, _ in stats.stats["Return"]] == [0.5]
    assert events.take() == [("won", 7, True)]
    assert events.take() == []


def test_an_announcement_may_say_much_or_little():
    events = channels.EventsChannel()
    assert events.announced == channels.Announcement((), None, None)
    hear(events, {"announce": {"critical_events": ["won"], "max_episode_steps": 9}})
    assert events.announced == channels.Announcement(("won",), 9, None)
    hear(events, {"announce": {"parameters": {"variant": ["a", "b"], "speed": []}}})
    assert events.announced.parameters == {"variant": ("a", "b"), "speed": ()}


def test_statistics_that_nobody_reads_do_not_pile_up():
    stats = channels.RecentStats()
    manager = SideChannelManager([stats])
    for value in range(3 * channels.KEPT_STATS):
        manager.process_side_channel_message(channels.statistic("x", value))
    assert len(stats.stats["x"]) == channels.KEPT_STATS
    assert stats.stats["x"][-1][0] == 3 * channels.KEPT_STATS - 1
