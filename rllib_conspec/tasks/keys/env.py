"""Multi-key-to-door as one Gymnasium environment."""

from rllib_conspec.single_env import SingleEnv
from rllib_conspec.tasks.keys.vector import NUM_APPLES, MultiKeyToDoorVectorEnv


class MultiKeyToDoorEnv(SingleEnv):
    """One game; options, observations and infos as in ``MultiKeyToDoorVectorEnv``.

    With seed s it plays exactly what environment 0 of a vector with seed s plays.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(
        self,
        keys: int = 1,
        conjunctive: bool = False,
        num_apples: int = NUM_APPLES,
        reward: float = 10.0,
        normalize_reward: bool = True,
        render_mode: str | None = None,
    ):
        game = MultiKeyToDoorVectorEnv(
            num_envs=1,
            keys=keys,
            conjunctive=conjunctive,
            num_apples=num_apples,
            reward=reward,
            normalize_reward=normalize_reward,
            render_mode=render_mode,
        )
        super().__init__(game)
