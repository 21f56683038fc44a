"""A Unity build as one Gymnasium environment."""

from __future__ import annotations

from rllib_conspec.single_env import SingleEnv
from rllib_conspec.unity.client.vector import UnityVectorEnv


class _OneAgent(UnityVectorEnv):
    _any_number_of_agents = True


class UnityEnv(SingleEnv):
    """The first agent of a player; options, observations and infos as in ``UnityVectorEnv``.

    Other agents of the build stand still.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
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
        game = _OneAgent(
            num_envs=1,
            file_name=file_name,
            num_agents=num_agents,
            base_port=base_port,
            timeout=timeout,
            no_graphics=no_graphics,
            parameters=parameters,
            engine=engine,
            additional_args=additional_args,
            log_dir=log_dir,
            behavior=behavior,
        )
        super().__init__(game)

    @property
    def pid(self) -> int | None:
        """Process id of the player."""
        return self.game.pid
