"""A Unity build, or another ML-Agents player, as one Gymnasium vector environment."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from mlagents_envs.side_channel.engine_configuration_channel import (
    EngineConfigurationChannel,
)
from mlagents_envs.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity import ports
from rllib_conspec.unity.channels import EventsChannel, RecentStats
from rllib_conspec.unity.crew import Crew
from rllib_conspec.unity.faults import PlayerFault
from rllib_conspec.unity.keeper import Keeper
from rllib_conspec.unity.options import PlayerOptions
from rllib_conspec.unity.process import Player

SEED_LIMIT = 1 << 32
# As fast as it can, as ML-Agents itself trains. Only Unity builds look at these.
ENGINE = {"time_scale": 20.0, "target_frame_rate": -1, "capture_frame_rate": 60}


class UnityVectorEnv(VectorEnv):
    """The agents of one player, stepped together.

    A finished agent starts anew on the next step, whose action is ignored
    (``AutoresetMode.NEXT_STEP``). A Unity build has already begun the new episode by then, and
    others are still in theirs: it takes one step of it with an action of zeros, which nobody sees.

    When the player dies or hangs, ``step()`` returns the previous observations and truncates all
    episodes with the info ``dropped``; the next step begins new ones in a new player.

    Args:
        num_envs: how many agents to play.
        file_name: the executable of a build; empty for the built-in OrangeTree player.
        num_agents: agents that the player has, if not ``num_envs``. Spare ones stand still.
        base_port: the first port to try.
        timeout: seconds to wait for the player, at its start and at every step.
        no_graphics: start a build without graphics; turn off if it needs a camera.
        parameters: environment parameters, numbers or words that the player knows.
        engine: engine settings of a build: time_scale, quality_level, width and height, ….
        additional_args: more command line arguments for the player.
        log_dir: where the player writes its log.
        behavior: the behaviour to play, if the build has several.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    _any_number_of_agents = False  # take what a build has, if `num_agents` does not say

    def __init__(
        self,
        num_envs: int = 1,
        file_name: str = "",
        num_agents: int | None = None,
        base_port: int = 5005,
        timeout: float = 30.0,
        no_graphics: bool = True,
        parameters: dict | None = None,
        engine: dict | None = None,
        additional_args: list | None = None,
        log_dir: str | None = None,
        behavior: str = "",
    ):
        self.closed = True  # nothing to close yet
        if num_envs < 1:
            raise OptionError("num_envs", f"must be at least 1, not {num_envs!r}")
        if num_agents is not None and num_agents < num_envs:
            raise OptionError("num_agents", f"must be at least num_envs, {num_envs}")
        self.num_envs = num_envs
        self._options = PlayerOptions(
            file_name=file_name,
            num_agents=num_envs if num_agents is None else num_agents,
            base_port=base_port,
            timeout=timeout,
            no_graphics=no_graphics,
            parameters=parameters or {},
            engine=ENGINE | (engine or {}),
            additional_args=tuple(additional_args or ()),
            log_dir=log_dir,
        )
        self._check_number = num_agents is not None or not self._any_number_of_agents
        self._behavior = behavior
        self._was_reset = False
        self._over = np.zeros(num_envs, bool)
        self.dropped_episodes = 0
        self._keeper = Keeper(self._start)
        self._port: ports.Port | None = None
        self.closed = False
        try:
            self._keeper.get()
            self._numbers = self._in_numbers(self._events.announced.parameters)
        except BaseException:
            self.close()
            raise
        self.single_observation_space = self._crew.sensors.space
        self.single_action_space = self._crew.actions.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        announced = self._events.announced
        self.critical_events = announced.critical_events
        self.max_episode_steps = announced.max_episode_steps

    # --- the player -----------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """Process id of the player, None while there is none."""
        return self._keeper.player.pid if self._keeper.player else None

    @property
    def port(self) -> int | None:
        """The port that the player was told."""
        return self._port.number if self._port else None

    @property
    def restarts(self) -> int:
        """How often a player was started in place of another one."""
        return self._keeper.restarts

    @property
    def stats(self) -> dict[str, list[float]]:
        """The latest values of each statistic that the player reports."""
        return {name: [value for value, _ in values] for name, values in self._stats.stats.items()}

    def _start(self) -> Player:
        """A new player in its first episodes."""
        if self._port is None:
            self._port = ports.take(self._options.base_port)
        self._events, self._stats = EventsChannel(), RecentStats()
        self._parameters, engine = EnvironmentParametersChannel(), EngineConfigurationChannel()
        self._events.greet()
        engine.set_configuration_parameters(**self._options.engine)
        self._send_parameters({k: v for k, v in self._options.parameters.items() if _is_number(v)})
        try:
            player = Player(
                self._options.command(self._port.number),
                self._port.number,
                timeout=self._options.timeout,
                side_channels=[self._events, self._stats, self._parameters, engine],
                seed=int(self.np_random.integers(1 << 31)),
                environment=self._options.environment(),
            )
        except PlayerFault:
            # Perhaps another program has the port; it costs nothing to try a different one.
            self._release_port()
            raise
        try:
            self._crew = Crew(player, self._events, self._behavior, self.num_envs)
            self._check_agents(self._crew.found)
        except BaseException:
            player.abort()
            raise
        return player

    def _check_agents(self, found: int) -> None:
        expected = self._options.num_agents
        if found != expected and (self._check_number or found < self.num_envs):
            raise OptionError(
                "num_agents",
                f"the player has {found} agents, not {expected}; to play all of them set "
                f"num_envs_per_env_runner: {found}",
            )

    def _in_numbers(self, known: Mapping[str, Sequence[str]] | None) -> dict[str, float]:
        """The parameters with words replaced by the numbers that they stand for."""
        numbers = {}
        for name, value in self._options.parameters.items():
            if known is not None and name not in known:
                raise OptionError("parameters", f"unknown {name}.{did_you_mean(name, known)}")
            if isinstance(value, str):
                words = list((known or {}).get(name, ()))
                if value not in words:
                    fitting = f"one of {', '.join(words)}" if words else "a number"
                    hint = did_you_mean(value, words)
                    raise OptionError(
                        "parameters", f"{name} must be {fitting}, not {value!r}.{hint}"
                    )
                value = words.index(value)
            numbers[name] = float(value)
        return numbers

    def _send_parameters(self, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            self._parameters.set_float_parameter(name, value)

    # --- Gymnasium ------------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes in all sub-environments.

        The player gets the lower 32 bits of ``seed`` as the parameters ``seed_high`` and
        ``seed_low``, 16 bits each, because parameters are float32. The built-in player seeds agent
        i with ``seed + i``. Without a seed the player goes on with the random numbers it has.
        """
        mask = (options or {}).get("reset_mask")
        if mask is not None and not np.all(mask):
            raise ValueError("a player resets all of its agents or none: reset_mask must be true")
        if seed is not None and not isinstance(seed, int | np.integer):
            seeds = [int(s) for s in seed]
            if seeds != [seeds[0] + i for i in range(self.num_envs)]:
                raise ValueError("a player takes one seed; agent i gets seed + i")
            seed = seeds[0]
        if seed is not None:
            super().reset(seed=int(seed))
        self._was_reset = True
        return self._begin(seed), {}

    def _begin(self, seed: int | None) -> Any:
        """First observations everywhere, if need be of another player."""
        while True:
            self._keeper.get()
            self._send_parameters(self._numbers)
            if seed is not None:
                high, low = divmod(int(seed) % SEED_LIMIT, 1 << 16)
                self._send_parameters({"seed_high": high, "seed_low": low})
            try:
                observations = self._crew.begin()
            except PlayerFault as fault:
                self._keeper.lost(fault)
                continue
            self._over = np.zeros(self.num_envs, bool)
            self._shown = observations
            return observations

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act with every agent whose episode goes on."""
        if not self._was_reset:
            raise gym.error.ResetNeeded("call reset() before step()")
        nobody = np.zeros(self.num_envs, bool)
        if self._keeper.player is None:  # lost at the last step
            return self._begin(None), np.zeros(self.num_envs), nobody, nobody.copy(), {}
        try:
            step = self._crew.play(actions, self._over)
        except PlayerFault as fault:
            self._keeper.lost(fault)
            return self._drop()
        self._over = step.terminated | step.truncated
        if self._over.any():
            self._keeper.worked()
        self._shown = step.observations
        return step.observations, step.rewards, step.terminated, step.truncated, step.infos

    def _drop(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """The episodes of a lost player end here."""
        self.dropped_episodes += int((~self._over).sum())
        self._over = np.ones(self.num_envs, bool)
        everybody = self._over.copy()
        infos = {"dropped": everybody.copy(), "_dropped": everybody.copy()}
        nobody = np.zeros(self.num_envs, bool)
        shown = copy.deepcopy(self._shown)
        return shown, np.zeros(self.num_envs), nobody, everybody, infos

    def close_extras(self, **kwargs: Any) -> None:
        """End the player and free its port."""
        self._keeper.close()
        self._release_port()

    def _release_port(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            with contextlib.suppress(OSError):
                port.release()


def _is_number(value: Any) -> bool:
    return not isinstance(value, str)
