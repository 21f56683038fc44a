"""ConSpec (contrastive retrospection) on Ray RLlib.

Importing this package registers its tasks with Gymnasium and nothing more: Ray and torch are
imported when `ConSpec` or `ConSpecConfig` is first used, so that rollout workers of other programs
can use the tasks alone.
"""

from rllib_conspec import tasks

__version__ = "0.1.0"
__all__ = [
    "ConSpec",
    "ConSpecAPPO",
    "ConSpecAPPOConfig",
    "ConSpecConfig",
    "ConSpecDQN",
    "ConSpecDQNConfig",
    "ConSpecIMPALA",
    "ConSpecIMPALAConfig",
    "ConSpecSAC",
    "ConSpecSACConfig",
    "DecisionTransformer",
    "DecisionTransformerConfig",
    "WholeEpisodePPO",
    "WholeEpisodePPOConfig",
    "with_reward_model",
]

tasks.register()


def __getattr__(name: str):
    if name in __all__:
        from rllib_conspec import algorithm

        return getattr(algorithm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
