"""OrangeTree as one Gymnasium environment."""

from rllib_conspec.single_env import SingleEnv
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv


class OrangeTreeEnv(SingleEnv):
    """One game; options, observations and infos as in ``OrangeTreeVectorEnv``.

    With seed s it plays exactly what environment 0 of a vector with seed s plays.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(
        self,
        variant: str = "train",
        reward: float = 10.0,
        normalize_reward: bool = True,
        render_mode: str | None = None,
    ):
        game = OrangeTreeVectorEnv(
            num_envs=1,
            variant=variant,
            reward=reward,
            normalize_reward=normalize_reward,
            render_mode=render_mode,
        )
        super().__init__(game)
