"""The agents of one started player, played as sub-environments.

A player decides for itself when an agent needs an action, and begins a new episode by presenting a
new agent. Gymnasium wants an answer from every sub-environment at every step. This is the place
where one becomes the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity.actions import Actions
from rllib_conspec.unity.channels import EventsChannel
from rllib_conspec.unity.faults import PlayerHangs
from rllib_conspec.unity.process import Player
from rllib_conspec.unity.seats import Seats
from rllib_conspec.unity.sensors import Sensors


@dataclass
class Step:
    """What a vector environment returns from a step, while it is being put together."""

    observations: Any
    begins: np.ndarray  # bool [n]: starts an episode, so that only its observation counts
    rewards: np.ndarray = field(init=False)
    terminated: np.ndarray = field(init=False)
    truncated: np.ndarray = field(init=False)
    ready: np.ndarray = field(init=False)
    infos: dict[str, np.ndarray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.begins)
        self.rewards = np.zeros(n)
        self.terminated, self.truncated, self.ready = (np.zeros(n, bool) for _ in range(3))

    @property
    def over(self) -> np.ndarray:
        """Whose episode ended."""
        return self.terminated | self.truncated

    def note(self, name: str, seat: int, value: Any) -> None:
        """Put one value into the infos, which hold arrays and masks."""
        if name not in self.infos:
            kind = {bool: bool, int: np.int64, float: np.float64}.get(type(value), object)
            self.infos[name] = np.zeros(len(self.begins), kind)
            self.infos[f"_{name}"] = np.zeros(len(self.begins), bool)
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
        agents = player.begin()
        self._behavior = _choose(behavior, player)
        spec = player.behavior_specs[self._behavior]
        self.sensors = Sensors(spec.observation_specs)
        self.actions = Actions(spec.action_spec)
        self._nothing = {
            name: Actions(other.action_spec).nothing
            for name, other in player.behavior_specs.items()
        }
        self.found = sum(not agent.done for agent in agents[self._behavior].value)
        # First observations of episodes that began before their seat was asked for one.
        self._first = self.sensors.empty(size)
        self._has_first = np.zeros(size, bool)

    def begin(self) -> Any:
        """Start new episodes in all seats; their first observations."""
        self._seats.clear()
        self._has_first[:] = False
        self._events.take()
        step = Step(self.sensors.empty(self._size), np.ones(self._size, bool))
        agents = self._player.begin()
        self._read(agents, step, after_reset=True)
        self._complete(step, [self.actions.nothing] * self._size)
        return step.observations

    def play(self, actions: Any, begins: np.ndarray) -> Step:
        """Act with everybody but those who begin."""
        messages = self.actions.messages(actions, self._size)
        step = Step(self.sensors.empty(self._size), begins)
        if begins.all() and self._has_first.all():
            step.observations, self._first = self._first, step.observations
        else:
            for seat in np.flatnonzero(begins):
                messages[seat] = self.actions.nothing
            self._exchange(messages, step)
            self._complete(step, messages)
        self._has_first[begins] = False
        return step

    def _complete(self, step: Step, messages: Sequence) -> None:
        """Go on until every seat has an answer.

        A build may send the end of an episode alone, and the decisions of the others later. Agents
        that decide more often than others repeat their action meanwhile.
        """
        deadline = time.monotonic() + self._player.timeout
        while not step.ready.all():
            if time.monotonic() > deadline:
                seats = np.flatnonzero(~step.ready).tolist()
                raise PlayerHangs(f"asked for no action of agents {seats} in time")
            self._exchange(messages, step)

    def _exchange(self, messages: Sequence, step: Step) -> None:
        actions = {}
        for behavior, agents in self._waiting.items():
            nothing = self._nothing[behavior]
            seats = [self._seats.of(a) if behavior == self._behavior else None for a in agents]
            actions[behavior] = [nothing if s is None else messages[s] for s in seats]
        self._read(self._player.go_on(actions), step)

    def _read(self, agents: Mapping[str, Any], step: Step, after_reset: bool = False) -> None:
        """Take in one message of the player."""
        self._waiting = {
            name: [agent.id for agent in agents[name].value if not agent.done]
            for name in self._nothing
            if name in agents
        }
        present = agents[self._behavior].value if self._behavior in agents else ()
        where: dict[int, int] = {}  # seats of the agents whose events count
        for agent in present:
            if agent.done and not after_reset:
                seat = self._seats.leave(agent.id)
                # An episode that ends before anybody saw it, or twice within a step, is passed by.
                if seat is not None and not step.begins[seat] and not step.over[seat]:
                    where[agent.id] = seat
                    self._end(agent, seat, step)
        for agent in present:
            if not agent.done and (seat := self._seats.enter(agent.id)) is not None:
                if not step.begins[seat] and not step.over[seat]:
                    where[agent.id] = seat
                self._go_on(agent, seat, step)
        for name, agent, value in self._events.take():
            if agent in where:
                step.note(name, where[agent], value)

    def _end(self, agent: Any, seat: int, step: Step) -> None:
        self.sensors.read(agent.observations, step.observations, seat)
        step.rewards[seat] += agent.reward + agent.group_reward
        step.terminated[seat] = not agent.max_step_reached
        step.truncated[seat] = agent.max_step_reached
        step.ready[seat] = True

    def _go_on(self, agent: Any, seat: int, step: Step) -> None:
        step.ready[seat] = True
        if step.over[seat]:  # the next episode, already; shown at the next step
            self.sensors.read(agent.observations, self._first, seat)
            self._has_first[seat] = True
            return
        self.sensors.read(agent.observations, step.observations, seat)
        if not step.begins[seat]:
            step.rewards[seat] += agent.reward + agent.group_reward


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
