"""One started player: its process, its side channels and its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mlagents_envs.side_channel.engine_configuration_channel import EngineConfigurationChannel
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity.channels import EventsChannel, RecentStats
from rllib_conspec.unity.client.crew import Crew, Step
from rllib_conspec.unity.client.faults import PlayerFault
from rllib_conspec.unity.client.options import PlayerOptions
from rllib_conspec.unity.client.process import Player

START_SECONDS = 60.0  # to load and to begin the first episodes, on a busy machine
SEED_LIMIT = 1 << 32
HALF = 1 << 16


class Session:
    """A player from its start to its end; ``size`` of its agents are played."""

    def __init__(self, options: PlayerOptions, port: int, size: int, *, seed: int):
        self.steps = 0
        self._events, self._stats = EventsChannel(), RecentStats()
        self._parameters = EnvironmentParametersChannel()
        engine = EngineConfigurationChannel()
        self._events.greet()
        engine.set_configuration_parameters(**options.engine)
        # Words have no numbers yet: the player tells them with its first answer.
        words = {k: v for k, v in options.parameters.items() if isinstance(v, str)}
        self._send({k: v for k, v in options.parameters.items() if k not in words})
        try:
            self._player = Player(
                options.command(port),
                port,
                timeout=options.timeout,
                start_timeout=max(options.timeout, START_SECONDS),
                side_channels=[self._events, self._stats, self._parameters, engine],
                seed=seed,
                environment=options.environment(),
            )
        except PlayerFault as fault:
            if options.log_dir is None:
                raise
            raise type(fault)(f"{fault}; its log is in {options.log_dir}") from fault
        try:
            self.crew = Crew(self._player, self._events, options.behavior, size)
            self._check_agents(options, size)
            known = self.announced.parameters
            self._send(in_numbers(options.parameters, known))
        except BaseException:
            self.abort()
            raise

    def _check_agents(self, options: PlayerOptions, size: int) -> None:
        found, expected = self.crew.found, options.num_agents
        if found < size or expected not in (None, found):
            raise OptionError(
                "num_agents",
                f"the player has {found} agents, not {expected or size}; to play all of them set "
                f"num_envs_per_env_runner: {found}",
            )

    @property
    def announced(self) -> Any:
        """What the player says of itself."""
        return self._events.announced

    @property
    def pid(self) -> int | None:
        """Process id of the player."""
        return self._player.pid

    @property
    def stats(self) -> dict[str, list[float]]:
        """The latest values of each statistic that the player reports."""
        return {name: [value for value, _ in values] for name, values in self._stats.stats.items()}

    def _send(self, parameters: Mapping[str, float]) -> None:
        """With the next command."""
        for name, value in parameters.items():
            self._parameters.set_float_parameter(name, value)

    def begin(self, seed: int | None) -> Any:
        """Start new episodes; their first observations."""
        if seed is not None:
            high, low = divmod(seed % SEED_LIMIT, HALF)
            self._send({"seed_high": high, "seed_low": low})
        return self.crew.begin()

    def play(self, actions: Any, begins: np.ndarray) -> Step:
        """Act with every agent but those that begin an episode."""
        self.steps += 1
        return self.crew.play(actions, begins)

    def abort(self) -> None:
        """End the player now."""
        self._player.abort()

    def close(self) -> None:
        """End the player in good order."""
        self._player.close()


def in_numbers(
    parameters: Mapping[str, float | str], known: Mapping[str, Sequence[str]] | None
) -> dict[str, float]:
    """The parameters with words replaced by the numbers that they stand for.

    ``known`` are the parameters of the player, each with its words; None if it does not say.
    """
    numbers = {}
    for name, value in parameters.items():
        if known is not None and name not in known:
            raise OptionError("parameters", f"unknown {name}.{did_you_mean(name, known)}")
        if isinstance(value, str):
            words = list((known or {}).get(name, ()))
            if value not in words:
                fitting = f"one of {', '.join(words)}" if words else "a number"
                hint = did_you_mean(value, words)
                raise OptionError("parameters", f"{name} must be {fitting}, not {value!r}.{hint}")
            value = words.index(value)
        numbers[name] = float(value)
    return numbers
