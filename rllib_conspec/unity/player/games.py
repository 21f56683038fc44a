"""A Gymnasium vector environment as the agents of a player: what goes into its messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from rllib_conspec.unity.player.encoding import ActionReader, ObservationWriter


class Games:
    """Plays ``env`` (next-step autoreset) for agents with ids from ``ids``, one id per episode."""

    def __init__(self, env: VectorEnv, ids: Iterator[int], kind: str, channels_first: bool):
        self.env = env
        self.actions = ActionReader(env.single_action_space)
        self._writer = ObservationWriter(env.single_observation_space, kind, channels_first)
        self._new_ids = ids
        count = env.num_envs
        self._ids = list(itertools.islice(ids, count))
        self._over = np.zeros(count, bool)
        self._waiting = list(range(count))  # sub-environments that get an action, in this order
        self._returns = np.zeros(count)
        # Of the last step: infos by name and agent id, and the statistics of finished episodes.
        self.events: dict[str, dict[int, Any]] = {}
        self.finished: list[dict[str, float]] = []

    def begin(self, seed: int | None, agents: Any) -> None:
        """Start all games anew."""
        observations, _ = self.env.reset(seed=seed)
        everybody = range(self.env.num_envs)
        self._rename(everybody)
        self._over = np.zeros(self.env.num_envs, bool)
        self._waiting = list(everybody)
        self._returns[:] = 0.0
        self.events, self.finished = {}, []
        for i in everybody:
            self._add(agents, observations, i)

    def step(self, actions: Sequence[Any], agents: Any, at_once: bool) -> None:
        """Play on; finished games are back ``at_once`` under a new id, or with the next step."""
        count = self.env.num_envs
        given = dict(zip(self._waiting, actions, strict=False))
        begins = self._over  # the environment starts these by itself now
        result = self.env.step(self.actions.read(given, count))
        observations, rewards, terminated, truncated, infos = result
        self._rename(np.flatnonzero(begins))
        self._over = terminated | truncated
        self._returns = np.where(begins, 0.0, self._returns + rewards)
        rows = zip(rewards.tolist(), terminated.tolist(), truncated.tolist(), strict=True)
        for i, (reward, terminates, truncates) in enumerate(rows):
            agent = self._add(agents, observations, i)
            agent.reward = reward
            if terminates or truncates:
                agent.done = True
                agent.max_step_reached = not terminates
        self._sum_up(infos)
        self._waiting = np.flatnonzero(~self._over).tolist()
        if at_once and self._over.any():
            self._begin_at_once(agents)

    def _begin_at_once(self, agents: Any) -> None:
        """Unity's way: the finished agents are in the same message again."""
        observations, _ = self.env.reset(options={"reset_mask": self._over})
        begins = np.flatnonzero(self._over).tolist()
        self._rename(begins)
        for i in begins:
            self._add(agents, observations, i)
        self._returns[self._over] = 0.0
        self._waiting += begins
        self._over = np.zeros_like(self._over)

    def _rename(self, who: Sequence[int]) -> None:
        for i in who:
            self._ids[i] = next(self._new_ids)

    def _add(self, agents: Any, observations: Any, index: int) -> Any:
        agent = agents.add()
        agent.id = self._ids[index]
        self._writer.write(agent.observations, observations, index)
        return agent

    def _sum_up(self, infos: Mapping[str, Any]) -> None:
        self.events = {}
        for name, values in infos.items():
            who = infos.get(f"_{name}")
            if who is not None and np.ndim(values) == 1:  # an array with its mask
                happened = np.flatnonzero(who).tolist()
                self.events[name] = {self._ids[i]: np.asarray(values)[i].item() for i in happened}
        self.finished = []
        for i in np.flatnonzero(self._over).tolist():
            statistics = {"Return": float(self._returns[i])}
            for name, values in self.events.items():
                if self._ids[i] in values and isinstance(values[self._ids[i]], bool | int | float):
                    statistics[name] = float(values[self._ids[i]])
            self.finished.append(statistics)
