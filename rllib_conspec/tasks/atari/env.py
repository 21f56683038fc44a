"""An Atari game as one Gymnasium environment."""

from rllib_conspec.single_env import SingleEnv
from rllib_conspec.tasks.atari.vector import STEPS, AtariColourVectorEnv


class AtariColourEnv(SingleEnv):
    """One game; options, observations and infos as in `AtariColourVectorEnv`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(
        self,
        game: str = "Pong",
        delayed: bool = False,
        max_episode_steps: int = STEPS,
        render_mode: str | None = None,
    ):
        super().__init__(
            AtariColourVectorEnv(
                num_envs=1,
                game=game,
                delayed=delayed,
                max_episode_steps=max_episode_steps,
                render_mode=render_mode,
            )
        )
