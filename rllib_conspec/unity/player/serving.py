"""Any Gymnasium vector environment as an ML-Agents player: the end that Unity usually is.

The player calls the trainer: it sends what its agents see and gets their actions back. With a
trainer that greets on our side channel (see ``channels``) a finished agent returns with the next
message, as in Gymnasium's next-step autoreset; with any other it is there in the same message
under a new id, as Unity does it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc
from gymnasium.vector import VectorEnv

from rllib_conspec.unity import channels
from rllib_conspec.unity.messages import API_VERSION, METHOD, OK, RESET, UnityMessage, wrap
from rllib_conspec.unity.player.games import Games

OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
)
CONNECT_SECONDS = 30
PACKAGE_VERSION = "2.1.0"  # of com.unity.ml-agents, the one that this player is like
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Farewell(Exception):
    """The trainer says that it is over."""


class Service:
    """Serves ``make(parameters)``, a vector environment, as behaviour ``name``.

    ``make`` is called again when the trainer changes a parameter; ``parameters`` names those that
    it knows, each with the words for its values 0, 1, …, or with none.
    """

    def __init__(
        self,
        make: Callable[[Mapping[str, float]], VectorEnv],
        name: str,
        *,
        observations: str = "float",
        channels_first: bool = False,
        parameters: Mapping[str, Sequence[str]] | None = None,
        version: str = API_VERSION,
    ):
        self._make = make
        self._name = name
        self._format = observations, channels_first
        self._known = parameters
        self._version = version
        self._parameters: dict[str, float] = {}
        self._seed: int | None = None
        self._greeted = self._announced = self._described = False
        self._ids = itertools.count()
        self._start()

    def _start(self) -> None:
        self._made_with = dict(self._parameters)
        self._games = Games(self._make(self._parameters), self._ids, *self._format)

    def run(self, port: int) -> None:
        """Play until the trainer ends it, or is gone."""
        with grpc.insecure_channel(f"127.0.0.1:{port}", OPTIONS) as channel:
            call = channel.unary_unary(
                "/{}/{}".format(*METHOD), UnityMessage.SerializeToString, UnityMessage.FromString
            )
            try:
                grpc.channel_ready_future(channel).result(CONNECT_SECONDS)
                self._seed = _send(call, self._introduction()).rl_initialization_input.seed
                command = _send(call, wrap())
                while True:
                    command = _send(call, self.answer(command.rl_input))
            except (Farewell, grpc.FutureTimeoutError):
                pass
            except grpc.RpcError as error:
                if error.code() not in GONE:
                    raise
            finally:
                self._games.env.close()

    def _introduction(self) -> Any:
        message = wrap()
        said = message.unity_output.rl_initialization_output
        said.name = self._name
        said.communication_version = self._version
        said.package_version = PACKAGE_VERSION
        said.capabilities.baseRLCapabilities = True
        said.capabilities.concatenatedPngObservations = True
        said.capabilities.compressedChannelMapping = True
        said.capabilities.hybridActions = True
        return message

    def answer(self, command: Any) -> Any:
        """What comes of a command, as the next message to the trainer."""
        self._hear(command.side_channel)
        if command.command == RESET and self._parameters != self._made_with:
            self._games.env.close()
            self._start()
        # Always a new message: one that is written over keeps all that was ever in it.
        message = wrap()
        output = message.unity_output
        agents = output.rl_output.agentInfos[self._name].value
        if command.command == RESET:
            seed, self._seed = self._seed, None
            self._games.begin(seed, agents)
        else:
            actions = command.agent_actions[self._name].value
            self._games.step(actions, agents, at_once=not self._greeted)
        if not self._described:
            self._described = True
            behavior = output.rl_initialization_output.brain_parameters.add()
            behavior.brain_name = self._name
            behavior.is_training = True
            self._games.actions.describe(behavior.action_spec)
        output.rl_output.side_channel = b"".join(self._side_messages())
        return message

    # --- side channels --------------------------------------------------------------------------

    def _side_messages(self) -> list[bytes]:
        said: dict[str, Any] = {}
        if not self._announced:
            self._announced = self._greeted
            said["announce"] = {
                "critical_events": list(getattr(self._games.env, "critical_events", ())),
                "max_episode_steps": getattr(self._games.env, "max_episode_steps", None),
                "parameters": self._known and {k: list(v) for k, v in self._known.items()},
            }
        if self._games.events:
            said["events"] = self._games.events
        messages = [
            channels.statistic(f"{self._name}/{name}", value)
            for episode in self._games.finished
            for name, value in episode.items()
        ]
        if said and self._greeted:
            messages.append(channels.pack(channels.EVENTS, json.dumps(said).encode()))
        return messages

    def _hear(self, data: bytes) -> None:
        for channel, message in channels.unpack(data):
            if channel == channels.EVENTS:
                self._greeted = True
            elif channel == channels.PARAMETERS and (found := channels.parameter(message)):
                self._set(*found)

    def _set(self, name: str, value: float) -> None:
        """A seed counts for the next reset only; it may come in two halves of 16 bits."""
        if name == "seed":
            self._seed = int(value)
        elif name == "seed_high":
            self._seed = (int(value) << 16) | ((self._seed or 0) & 0xFFFF)
        elif name == "seed_low":
            self._seed = ((self._seed or 0) & ~0xFFFF) | int(value)
        else:
            self._parameters[name] = value


def _send(call: Callable, message: Any) -> Any:
    received = call(message)
    if received.header.status != OK:
        raise Farewell
    return received.unity_input
