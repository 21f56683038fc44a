"""A trainer and a player in one process: messages are passed on instead of sent."""

import os

from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel
from mlagents_envs.side_channel.side_channel_manager import SideChannelManager

from rllib_conspec.unity.channels import EventsChannel, RecentStats
from rllib_conspec.unity.client.process import Player
from rllib_conspec.unity.messages import UnityMessage


class DirectPlayer(Player):
    """``service`` answers as it would over the network."""

    def __init__(self, service, greet=True, timeout=5.0):
        self._service = service
        self._owner = os.getpid()
        self._process = None
        self._communicator = self
        self._env_specs = {}
        self.timeout = timeout
        self.events, self.stats = EventsChannel(), RecentStats()
        self.parameters = EnvironmentParametersChannel()
        self._side_channel_manager = SideChannelManager([self.events, self.stats, self.parameters])
        self.exchanged = 0
        if greet:
            self.events.greet()

    def exchange(self, message, check):
        self.exchanged += 1
        sent = UnityMessage.FromString(message.SerializeToString())
        answer = self._service.answer(sent.unity_input.rl_input)
        return UnityMessage.FromString(answer.SerializeToString()).unity_output
