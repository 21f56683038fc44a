"""A player and the connection to it: mlagents-envs' environment without its endless waits."""

from __future__ import annotations

import atexit
import logging
import os
import warnings
from collections.abc import Mapping, Sequence

import mlagents_envs
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.side_channel import SideChannel

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client.communicator import LoopbackCommunicator
from rllib_conspec.unity.client.faults import PlayerDied, PlayerFault, PlayerTalksNonsense
from rllib_conspec.unity.client.launch import PlayerProcess
from rllib_conspec.unity.messages import API_VERSION, RESET, STEP, wrap

FAREWELL_SECONDS = 3.0  # a player told to end has this long before it is killed
logging.getLogger(mlagents_envs.__name__).setLevel(logging.WARNING)
warnings.filterwarnings("ignore", "distutils Version classes", DeprecationWarning)


class Player(UnityEnvironment):
    """The trainer's hold on a player: its process, started, and the connection after the handshake.

    mlagents-envs does the handshake, the specification of behaviours and the side channels; reading
    agents is left to the caller, who knows where their observations go.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        *,
        timeout: float,
        start_timeout: float | None = None,
        side_channels: Sequence[SideChannel] = (),
        seed: int = 0,
        environment: Mapping[str, str] | None = None,
    ):
        self._command = [*command, self._PORT_COMMAND_LINE_ARG, str(port)]
        self._environment = environment
        self._owner = os.getpid()
        self.timeout = timeout
        self._process: PlayerProcess | None = None
        self._communicator: LoopbackCommunicator | None = None
        start_timeout = timeout if start_timeout is None else start_timeout
        try:
            # No file name: the process is started by `_send_academy_parameters`, our way.
            super().__init__(
                base_port=port,
                timeout_wait=start_timeout,
                side_channels=[*side_channels],
                seed=seed,
            )
        except BaseException:
            self.abort()
            raise
        finally:
            # The kernel ends players with this process; `atexit` would only keep dead ones alive.
            atexit.unregister(self._close)

    @property
    def pid(self) -> int | None:
        """Of the player's process, while there is one."""
        return self._process.pid if self._process else None

    @staticmethod
    def _get_communicator(worker_id: int, base_port: int, timeout_wait: float):
        return LoopbackCommunicator(base_port + worker_id, timeout_wait)

    def _send_academy_parameters(self, init_parameters):
        self._process = PlayerProcess(self._command, self._environment)
        try:
            output = super()._send_academy_parameters(init_parameters)
        except PlayerFault as fault:
            raise type(fault)(f"{fault} (during the handshake)") from fault
        self._check_version(output.rl_initialization_output.communication_version)
        return output

    def _check_version(self, version: str) -> None:
        if version.split(".")[0] != API_VERSION.split(".")[0]:
            raise OptionError(
                "file_name",
                f"{self._command[0]} speaks version {version or 'none'} of the ML-Agents protocol, "
                f"not {API_VERSION}; build it with the package com.unity.ml-agents 1, 2 or 3",
            )

    def _poll_process(self) -> None:
        if self._process is not None and (how := self._process.ended()) is not None:
            raise PlayerDied(how)

    def begin(self):
        """Start new episodes everywhere; the agents of all behaviours, by name."""
        if self._process is not None:
            self._process.trim_output()
        agents = self._command_player(RESET, {})
        self._communicator.timeout = self.timeout  # the start is over
        return agents

    def go_on(self, actions: Mapping[str, Sequence]):
        """Act and see what comes of it; ``actions`` has one message for every waiting agent."""
        return self._command_player(STEP, actions)

    def _command_player(self, command: int, actions: Mapping[str, Sequence]):
        message = wrap()
        said = message.unity_input.rl_input
        said.command = command
        for behavior, messages in actions.items():
            said.agent_actions[behavior].value.extend(messages)
        said.side_channel = bytes(self._side_channel_manager.generate_side_channel_messages())
        output = self._communicator.exchange(message, self._poll_process)
        if output is None:
            raise PlayerDied("closed the connection")
        try:
            self._update_behavior_specs(output)
            self._side_channel_manager.process_side_channel_message(output.rl_output.side_channel)
        except Exception as error:
            raise PlayerTalksNonsense(f"sent a message that cannot be read: {error}") from error
        return output.rl_output.agentInfos

    def abort(self) -> None:
        """End the player now, whatever state it is in."""
        self._close(0.0)

    def close(self) -> None:
        """Ask the player to end, and see to it that it does."""
        self._close(FAREWELL_SECONDS)

    def _close(self, timeout: float | None = 0.0) -> None:
        self._loaded = False
        process, self._process = self._process, None
        communicator, self._communicator = self._communicator, None
        if self._owner != os.getpid():
            return  # a forked copy must not end the original's player
        if process is not None:
            process.end(timeout or 0.0, communicator.farewell)
        if communicator is not None:
            communicator.close()
