"""A Unity build, or another ML-Agents player, as one Gymnasium vector environment."""

from __future__ import annotations

import atexit
import copy
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client import ports
from rllib_conspec.unity.client.faults import PlayerFault
from rllib_conspec.unity.client.keeper import Keeper
from rllib_conspec.unity.client.options import PlayerOptions
from rllib_conspec.unity.client.session import Session

# As fast as it can, as ML-Agents itself trains. Only Unity builds look at these.
ENGINE = {"time_scale": 20.0, "target_frame_rate": -1, "capture_frame_rate": 60}
MANY_STEPS = 1000  # after which a player is known to work, also if its episodes have no end


class UnityVectorEnv(VectorEnv):
    """The agents of one player, stepped together.

    A finished agent starts anew on the next step, whose action is ignored
    (``AutoresetMode.NEXT_STEP``). A Unity build has already begun the new episode by then, and
    others are still in theirs: it takes one step of it with an action of zeros, which nobody sees.

    When the player dies or hangs, ``step()`` returns the previous observations and truncates all
    episodes with the info ``dropped``; the next step begins new ones in a new player.

    Args:
        num_envs: how many agents to play.
        file_name: the executable of a build; empty for the built-in player.
        num_agents: agents that the player has, if not ``num_envs``. Spare ones stand still.
        base_port: the first port to try.
        timeout: seconds to wait for the player at every step; for its start at least a minute.
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
        if num_agents is None and not (file_name and self._any_number_of_agents):
            num_agents = num_envs
        self._options = PlayerOptions(
            file_name=file_name,
            num_agents=num_agents,
            base_port=base_port,
            timeout=timeout,
            no_graphics=no_graphics,
            parameters=parameters or {},
            engine=ENGINE | (engine or {}),
            additional_args=tuple(additional_args or ()),
            log_dir=log_dir,
            behavior=behavior,
        )
        self._was_reset = False
        self._over = np.zeros(num_envs, bool)
        self.dropped_episodes = 0
        self._port: ports.Port | None = None
        self._keeper: Keeper[Session] = Keeper(self._start)
        self.closed = False
        _open.add(self)
        try:
            session = self._keeper.get()
        except BaseException:
            self.close()
            raise
        self.single_observation_space = session.crew.sensors.space
        self.single_action_space = session.crew.actions.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.critical_events = session.announced.critical_events
        self.max_episode_steps = session.announced.max_episode_steps

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

    def take_incidents(self) -> list[str]:
        """A line for every player that was lost since this was last asked."""
        taken, self._keeper.incidents = self._keeper.incidents, []
        return taken

    @property
    def stats(self) -> dict[str, list[float]]:
        """The latest values of each statistic that the player reports."""
        return self._keeper.player.stats if self._keeper.player else {}

    def _start(self) -> Session:
        if self._port is None:
            self._port = ports.take(self._options.base_port)
        seed = int(self.np_random.integers(1 << 31))
        try:
            return Session(self._options, self._port.number, self.num_envs, seed=seed)
        except PlayerFault:
            # Perhaps another program has the port; it costs nothing to try a different one.
            self._release_port()
            raise

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
            seed = int(seed)
            super().reset(seed=seed)
        observations = self._begin(seed)
        self._was_reset = True
        return observations, {}

    def _begin(self, seed: int | None) -> Any:
        """First observations everywhere, if need be of another player."""
        if self.closed:
            raise gym.error.ClosedEnvironmentError("the environment was closed")
        while True:
            session = self._keeper.get()
            try:
                self._shown = session.begin(seed)
            except PlayerFault as fault:
                self._keeper.lost(fault)
                continue
            self._over = np.zeros(self.num_envs, bool)
            return self._shown

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act with every agent whose episode goes on."""
        if not self._was_reset:
            raise gym.error.ResetNeeded("call reset() before step()")
        session = self._keeper.player
        if session is None:  # lost at the last step
            nobody = np.zeros(self.num_envs, bool)
            return self._begin(None), np.zeros(self.num_envs), nobody, nobody.copy(), {}
        try:
            step = session.play(actions, self._over)
        except PlayerFault as fault:
            self._keeper.lost(fault)
            return self._drop()
        self._over = step.terminated | step.truncated
        if self._over.any() or session.steps == MANY_STEPS:
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
        _open.discard(self)
        self._keeper.close()
        self._release_port()

    def __del__(self) -> None:
        # While the interpreter goes down, nothing can be ended in good order any more.
        if not sys.is_finalizing():
            super().__del__()

    def _release_port(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            port.release()


# Programs may forget to close what they opened; then it is done while that is still possible.
_open: weakref.WeakSet[UnityVectorEnv] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for env in list(_open):
        env.close()
