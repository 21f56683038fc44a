"""The agents of one started player, played as sub-environments.

A player decides for itself when an agent needs an action, and begins a new episode by presenting a
new agent. Gymnasium wants an answer from every sub-environment at every step. This is the place
where one becomes the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity.channels import EventsChannel
from rllib_conspec.unity.client.actions import Actions
from rllib_conspec.unity.client.faults import PlayerHangs
from rllib_conspec.unity.client.process import Player
from rllib_conspec.unity.client.seats import Seats
from rllib_conspec.unity.client.sensors import Sensors

LATE_MESSAGES = 10  # some scenes bring their agents in one after the other


class Step:
    """What a vector environment returns from a step, while it is being put together."""

    def __init__(self, observations: Any, begins: np.ndarray):
        """``begins`` tells who starts an episode, so that only the observation counts."""
        n = len(begins)
        self.observations = observations
        self.rewards = np.zeros(n)
        self.terminated, self.truncated = np.zeros(n, bool), np.zeros(n, bool)
        self.infos: dict[str, np.ndarray] = {}
        # Lists, because they are asked for one element at a time.
        self.begins: list[bool] = begins.tolist()
        self.plays: list[bool] = (~begins).tolist()  # until its episode ends
        self.missing = set(range(n))  # who has not answered yet

    def note(self, name: str, seat: int, value: Any) -> None:
        """Put one value into the infos, which hold arrays and masks."""
        if name not in self.infos:
            kind = {bool: bool, int: np.int64, float: np.float64}.get(type(value), object)
            self.infos[name] = np.zeros(len(self.plays), kind)
            self.infos[f"_{name}"] = np.zeros(len(self.plays), bool)
        self.infos[name][seat] = value
        self.infos[f"_{name}"][seat] = True


class Crew:
    """The first ``size`` agents of one behaviour; spare agents stand still."""

    def __init__(self, player: Player, events: EventsChannel, behavior: str, size: int):
        self._player = player
        self._events = events
        self._size = size
        self._seats = Seats(size)
        self._waiting: dict[str, list[int]] = {}  # agents that expect an action, by behaviour
        self._nothing: dict[str, Any] = {}
        self._behavior = ""
        self.found = self._look_around(behavior)
        spec = player.behavior_specs[self._behavior]
        self.sensors = Sensors(spec.observation_specs)
        self.actions = Actions(spec.action_spec)
        # First observations of episodes that began before their seat was asked for one.
        self._first = self.sensors.empty(size)
        self._has_first = np.zeros(size, bool)

    def _look_around(self, behavior: str) -> int:
        """Choose the behaviour to play and count its agents."""
        self._meet(self._player.begin())
        seen: set[int] = set()
        for late in range(LATE_MESSAGES + 1):
            if late:
                self._meet(self._player.go_on(self._actions({})))
            if self._player.behavior_specs:
                self._behavior = _choose(behavior, self._player)
                seen.update(self._waiting.get(self._behavior, ()))
            if len(seen) >= self._size:
                break
        if not seen:
            raise OptionError("file_name", "the player has no agents that can be trained")
        return len(seen)

    def _meet(self, agents: Mapping[str, Any]) -> None:
        """Note who expects an action."""
        for name, spec in self._player.behavior_specs.items():
            if name not in self._nothing:
                self._nothing[name] = Actions(spec.action_spec).nothing
        self._waiting = {
            name: [agent.id for agent in agents[name].value if not agent.done]
            for name in self._nothing
            if name in agents
        }

    def _actions(self, messages: Mapping[int, Any]) -> dict[str, list[Any]]:
        """What to send: the ``messages`` of the seats, nothing for everybody else."""
        actions = {}
        for name, agents in self._waiting.items():
            nothing = self._nothing[name]
            ours = name == self._behavior
            actions[name] = [
                messages.get(self._seats.of(a), nothing) if ours else nothing for a in agents
            ]
        return actions

    def begin(self) -> Any:
        """Start new episodes in all seats; their first observations."""
        self._seats.clear()
        self._has_first[:] = False
        self._events.take()
        step = Step(self.sensors.empty(self._size), np.ones(self._size, bool))
        agents = self._player.begin()
        self._read(agents, step, after_reset=True)
        self._complete(step, {})
        return step.observations

    def play(self, actions: Any, begins: np.ndarray) -> Step:
        """Act with everybody but those who begin."""
        messages = dict(enumerate(self.actions.messages(actions, self._size)))
        step = Step(self.sensors.empty(self._size), begins)
        if begins.all() and self._has_first.all():
            step.observations, self._first = self._first, step.observations
        else:
            for seat in np.flatnonzero(begins).tolist():
                del messages[seat]
            self._exchange(messages, step)
            self._complete(step, messages)
        self._has_first[begins] = False
        return step

    def _complete(self, step: Step, messages: Mapping[int, Any]) -> None:
        """Go on until every seat has an answer.

        A build may send the end of an episode alone, and the decisions of the others later. Agents
        that decide more often than others repeat their action meanwhile.
        """
        deadline = time.monotonic() + self._player.timeout
        while step.missing:
            if time.monotonic() > deadline:
                raise PlayerHangs(f"asked for no action of agents {sorted(step.missing)} in time")
            self._exchange(messages, step)

    def _exchange(self, messages: Mapping[int, Any], step: Step) -> None:
        self._read(self._player.go_on(self._actions(messages)), step)

    def _read(self, agents: Mapping[str, Any], step: Step, after_reset: bool = False) -> None:
        """Take in one message of the player."""
        self._meet(agents)
        present = agents[self._behavior].value if self._behavior in agents else ()
        where: dict[int, int] = {}  # seats of the agents whose events count
        for agent in present:
            if agent.done and not after_reset:
                seat = self._seats.leave(agent.id)
                # An episode that ends before anybody saw it, or twice within a step, is passed by.
                if seat is not None and step.plays[seat]:
                    where[agent.id] = seat
                    self._end(agent, seat, step)
        for agent in present:
            if not agent.done and (seat := self._seats.enter(agent.id)) is not None:
                if step.plays[seat]:
                    where[agent.id] = seat
                self._go_on(agent, seat, step)
        for name, agent, value in self._events.take():
            if agent in where:
                step.note(name, where[agent], value)

    def _end(self, agent: Any, seat: int, step: Step) -> None:
        self.sensors.read(agent.observations, step.observations, seat)
        step.rewards[seat] += agent.reward + agent.group_reward
        ends = step.truncated if agent.max_step_reached else step.terminated
        ends[seat] = True
        step.plays[seat] = False
        step.missing.discard(seat)

    def _go_on(self, agent: Any, seat: int, step: Step) -> None:
        step.missing.discard(seat)
        if step.plays[seat]:
            step.rewards[seat] += agent.reward + agent.group_reward
        elif not step.begins[seat]:  # the next episode, already; shown at the next step
            self.sensors.read(agent.observations, self._first, seat)
            self._has_first[seat] = True
            return
        self.sensors.read(agent.observations, step.observations, seat)


def _choose(behavior: str, player: Player) -> str:
    names = [*player.behavior_specs]
    if behavior in names:
        return behavior
    short = [name for name in names if name.split("?")[0] == behavior]  # "Walker?team=0"
    if len(short) == 1:
        return short[0]
    if behavior:
        hint = did_you_mean(behavior, names)
        raise OptionError("behavior", f"the player has no {behavior!r} but {names}.{hint}")
    if len(names) != 1:
        raise OptionError("behavior", f"must be one of those that the player has: {names}")
    return names[0]
