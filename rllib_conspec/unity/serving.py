"""Any Gymnasium vector environment as an ML-Agents player: the end that Unity usually is.

The player calls the trainer: it sends what its agents see and gets their actions back. With a
trainer that greets on our side channel (see ``channels``) a finished agent returns with the next
message, as in Gymnasium's next-step autoreset; with any other it is there in the same message
under a new id, as Unity does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc
import numpy as np
from gymnasium.vector import VectorEnv

from rllib_conspec.unity import channels
from rllib_conspec.unity.encoding import ActionReader, ObservationWriter
from rllib_conspec.unity.messages import API_VERSION, METHOD, OK, RESET, UnityMessage, wrap

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
)
CONNECT_SECONDS = 30


class Farewell(Exception):
    """The trainer is gone, or says that it is over."""


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
        self._kind = observations
        self._channels_first = channels_first
        self._known = parameters
        self._version = version
        self._parameters: dict[str, float] = {}
        self._seed: int | None = None
        self._greeted = self._announced = self._described = False
        self._side = b""  # side channel messages for the next answer
        self._rebuild()

    def _rebuild(self) -> None:
        self._made_with = dict(self._parameters)
        self.env = self._make(self._parameters)
        count = self.env.num_envs
        self._writer = ObservationWriter(
            self.env.single_observation_space, self._kind, self._channels_first
        )
        self._reader = ActionReader(self.env.single_action_space)
        self._ids = np.arange(count)
        self._next_id = count
        self._over = np.zeros(count, bool)
        self._waiting = list(range(count))  # sub-environments that get an action, in order
        self._returns = np.zeros(count)

    # --- the conversation -----------------------------------------------------------------------

    def run(self, port: int) -> None:
        """Play until the trainer ends it."""
        with grpc.insecure_channel(f"localhost:{port}", CHANNEL_OPTIONS) as channel:
            call = channel.unary_unary(
                "/{}/{}".format(*METHOD), UnityMessage.SerializeToString, UnityMessage.FromString
            )
            try:
                grpc.channel_ready_future(channel).result(CONNECT_SECONDS)
                self._seed = self._send(call, self._introduction()).rl_initialization_input.seed
                command = self._send(call, wrap())
                while True:
                    command = self._send(call, self.answer(command.rl_input))
            except (Farewell, grpc.FutureTimeoutError):
                pass
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
            finally:
                self.env.close()

    @staticmethod
    def _send(call: Callable, message: Any) -> Any:
        received = call(message)
        if received.header.status != OK:
            raise Farewell
        return received.unity_input

    def _introduction(self) -> Any:
        message = wrap()
        said = message.unity_output.rl_initialization_output
        said.name = self._name
        said.communication_version = self._version
        said.package_version = "2.1.0"
        said.capabilities.baseRLCapabilities = True
        said.capabilities.concatenatedPngObservations = True
        said.capabilities.compressedChannelMapping = True
        said.capabilities.hybridActions = True
        return message

    def answer(self, command: Any) -> Any:
        """What comes of a command, as the next message to the trainer."""
        self._hear(command.side_channel)
        message = wrap()
        output = message.unity_output.rl_output
        agents = output.agentInfos[self._name].value
        if command.command == RESET:
            self._begin(agents)
        else:
            self._step(command.agent_actions[self._name].value, agents)
        if not self._described:
            self._describe(message.unity_output.rl_initialization_output.brain_parameters.add())
        if self._greeted and not self._announced:
            self._announce()
        output.side_channel, self._side = self._side, b""
        return message

    def _describe(self, behavior: Any) -> None:
        self._described = True
        behavior.brain_name = self._name
        behavior.is_training = True
        self._reader.describe(behavior.action_spec)

    def _announce(self) -> None:
        self._announced = True
        announcement = {
            "critical_events": list(getattr(self.env, "critical_events", ())),
            "max_episode_steps": getattr(self.env, "max_episode_steps", None),
            "parameters": self._known and {k: list(words) for k, words in self._known.items()},
        }
        self._tell({"announce": announcement})

    def _tell(self, said: Mapping[str, Any]) -> None:
        self._side += channels.pack(channels.EVENTS, json.dumps(said).encode())

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

    # --- the environment ------------------------------------------------------------------------

    def _begin(self, agents: Any) -> None:
        if self._parameters != self._made_with:
            self.env.close()
            self._rebuild()
        seed, self._seed = self._seed, None
        observations, _ = self.env.reset(seed=seed)
        everybody = range(self.env.num_envs)
        self._over[:] = False
        self._new_ids(everybody)
        self._waiting = list(everybody)
        for i in everybody:
            self._add(agents, observations, i, 0.0)

    def _step(self, actions: Sequence[Any], agents: Any) -> None:
        given = dict(zip(self._waiting, actions, strict=False))
        chosen = self._reader.read(given, self.env.num_envs)
        begins = np.flatnonzero(self._over)  # the environment starts these by itself now
        observations, rewards, terminated, truncated, infos = self.env.step(chosen)
        over = np.asarray(terminated | truncated)
        self._new_ids(begins)
        self._returns = np.where(self._over, 0.0, self._returns + rewards)
        for i in range(self.env.num_envs):
            agent = self._add(agents, observations, i, float(rewards[i]))
            agent.done = bool(over[i])
            agent.max_step_reached = bool(truncated[i] and not terminated[i])
        self._report(over, infos)
        self._over = over
        self._waiting = np.flatnonzero(~over).tolist()
        if over.any() and not self._greeted:
            self._begin_at_once(over, agents)

    def _begin_at_once(self, over: np.ndarray, agents: Any) -> None:
        """Unity's way: the finished agents are back in the same message."""
        observations, _ = self.env.reset(options={"reset_mask": over})
        begins = np.flatnonzero(over)
        self._new_ids(begins)
        self._returns[begins] = 0.0
        for i in begins:
            self._add(agents, observations, i, 0.0)
        self._waiting += begins.tolist()
        self._over = np.zeros_like(over)

    def _new_ids(self, who: Sequence[int]) -> None:
        for i in who:
            self._ids[i] = self._next_id
            self._next_id += 1

    def _add(self, agents: Any, observations: Any, index: int, reward: float) -> Any:
        agent = agents.add(id=int(self._ids[index]), reward=reward)
        self._writer.write(agent, observations, index)
        return agent

    def _report(self, over: np.ndarray, infos: Mapping[str, Any]) -> None:
        """Infos to a trainer that knows our channel, statistics of whole episodes to any."""
        events: dict[str, dict[str, Any]] = {}
        for name, values in infos.items():
            who = infos.get(f"_{name}")
            if who is not None and np.ndim(values) == 1:
                plain = {
                    str(self._ids[i]): np.asarray(values[i]).item() for i in np.flatnonzero(who)
                }
                events[name] = plain
        if events and self._greeted:
            self._tell({"events": events})
        for i in np.flatnonzero(over):
            self._side += channels.statistic(f"{self._name}/Return", float(self._returns[i]))
            for name, values in events.items():
                if name.startswith("is_") and str(self._ids[i]) in values:
                    value = float(values[str(self._ids[i])])
                    self._side += channels.statistic(f"{self._name}/{name}", value)
