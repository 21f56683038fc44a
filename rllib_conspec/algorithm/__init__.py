"""ConSpec as RLlib algorithms. Importing this package registers them with Ray Tune by name."""

from ray.tune.registry import register_trainable

from rllib_conspec.algorithm.backbones import (
    ConSpecAPPO,
    ConSpecAPPOConfig,
    ConSpecDQN,
    ConSpecDQNConfig,
    ConSpecIMPALA,
    ConSpecIMPALAConfig,
    ConSpecSAC,
    ConSpecSACConfig,
)
from rllib_conspec.algorithm.conspec import ConSpec, ConSpecConfig
from rllib_conspec.algorithm.decision_transformer import (
    DecisionTransformer,
    DecisionTransformerConfig,
)
from rllib_conspec.algorithm.ppo import WholeEpisodePPO, WholeEpisodePPOConfig
from rllib_conspec.algorithm.with_reward_model import with_reward_model

# All that take reward models.
ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (
        ConSpec,
        WholeEpisodePPO,
        ConSpecAPPO,
        ConSpecIMPALA,
        ConSpecDQN,
        ConSpecSAC,
    )
}
# And what learns from recorded episodes, which nobody can be paid for any more.
OFFLINE = {"DecisionTransformer": DecisionTransformer}
for _name, _algorithm in (ALGORITHMS | OFFLINE).items():
    register_trainable(_name, _algorithm)

__all__ = [
    "ALGORITHMS",
    "OFFLINE",
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
