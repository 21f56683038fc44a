"""ConSpec as RLlib algorithms. Importing this package registers them with Ray Tune by name."""

from ray.tune.registry import register_trainable

from rllib_conspec.algorithm.conspec import ConSpec, ConSpecConfig
from rllib_conspec.algorithm.ppo import WholeEpisodePPO, WholeEpisodePPOConfig
from rllib_conspec.algorithm.with_reward_model import with_reward_model

register_trainable("ConSpec", ConSpec)
register_trainable("WholeEpisodePPO", WholeEpisodePPO)

__all__ = [
    "ConSpec",
    "ConSpecConfig",
    "WholeEpisodePPO",
    "WholeEpisodePPOConfig",
    "with_reward_model",
]
