"""Side channels: what travels next to observations and actions.

Parameters, engine settings and statistics go through ML-Agents' own channels. One channel is ours:
it brings the infos of a Gymnasium environment from the player. A player that does not know it, such
as any Unity build, ignores the greeting and is used without infos. Its messages are JSON:

- to the player, once: ``{"hello": 1}``. From then on a finished agent comes back one step later
  (Gymnasium's next-step autoreset) instead of in the same message.
- from the player, once: ``{"announce": {"critical_events": […], "max_episode_steps": 65,
  "parameters": {"variant": ["train", "black"], "reward": []}}}``; the words of a parameter stand
  for the numbers 0, 1, ….
- from the player, with a step: ``{"events": {"is_success": {"17": true}}}``, by agent id.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlagents_envs.side_channel import IncomingMessage, OutgoingMessage, SideChannel
from mlagents_envs.side_channel.stats_side_channel import (
    StatsAggregationMethod,
    StatsSideChannel,
)

EVENTS = uuid.uuid5(uuid.NAMESPACE_URL, "rllib_conspec/EventsChannel")
PARAMETERS = uuid.UUID("534c891e-810f-11ea-a9d0-822485860400")
STATS = uuid.UUID("a1d8f7b7-cec8-50f9-b78b-d3e165a78520")
AVERAGE = StatsAggregationMethod.AVERAGE.value
FLOAT = 0  # the kind of parameter that is a plain number
KEPT_STATS = 100  # values per statistic; nobody may ever read them


@dataclass
class Announcement:
    """What a player says of itself."""

    critical_events: tuple[str, ...] = ()
    max_episode_steps: int | None = None
    # The words for a parameter's values 0, 1, …; None if the player does not say what it knows.
    parameters: Mapping[str, tuple[str, ...]] | None = None


class EventsChannel(SideChannel):
    """The trainer's end of our channel."""

    def __init__(self) -> None:
        super().__init__(EVENTS)
        self.announced = Announcement()
        self._events: list[tuple[str, int, Any]] = []

    def greet(self) -> None:
        """Tell the player, with the next command, that infos are welcome."""
        message = OutgoingMessage()
        message.set_raw_bytes(json.dumps({"hello": 1}).encode())
        self.queue_message_to_send(message)

    def on_message_received(self, msg: IncomingMessage) -> None:
        said = json.loads(msg.get_raw_bytes())
        if "announce" in said:
            known = said["announce"].get("parameters")
            self.announced = Announcement(
                critical_events=tuple(said["announce"].get("critical_events", ())),
                max_episode_steps=said["announce"].get("max_episode_steps"),
                parameters=known and {name: tuple(words) for name, words in known.items()},
            )
        for name, values in said.get("events", {}).items():
            self._events += [(name, int(agent), value) for agent, value in values.items()]

    def take(self) -> list[tuple[str, int, Any]]:
        """(name, agent id, value) of all that happened since the last call."""
        events, self._events = self._events, []
        return events


class RecentStats(StatsSideChannel):
    """Statistics that a player reports; only the latest values are kept."""

    def on_message_received(self, msg: IncomingMessage) -> None:
        name, value = msg.read_string(), msg.read_float32()
        how = StatsAggregationMethod(msg.read_int32())
        self.stats.setdefault(name, deque(maxlen=KEPT_STATS)).append((value, how))


# --- the player's end: bytes of all channels in one string ------------------------------------


def pack(channel: uuid.UUID, message: bytes) -> bytes:
    """One message, as it is joined with others."""
    return channel.bytes_le + struct.pack("<i", len(message)) + message


def unpack(data: bytes) -> Iterator[tuple[uuid.UUID, bytes]]:
    """The (channel, message) pairs in what the trainer sent."""
    offset = 0
    while offset < len(data):
        channel = uuid.UUID(bytes_le=data[offset : offset + 16])
        (length,) = struct.unpack_from("<i", data, offset + 16)
        yield channel, data[offset + 20 : offset + 20 + length]
        offset += 20 + length


def parameter(message: bytes) -> tuple[str, float] | None:
    """Name and value of an environment parameter; None for samplers, which are not supported."""
    reader = IncomingMessage(message)
    name = reader.read_string()
    return (name, reader.read_float32()) if reader.read_int32() == FLOAT else None


def statistic(name: str, value: float) -> bytes:
    """A number that the trainer averages over the agents and episodes of a while."""
    writer = OutgoingMessage()
    writer.write_string(name)
    writer.write_float32(value)
    writer.write_int32(AVERAGE)
    return pack(STATS, bytes(writer.buffer))
