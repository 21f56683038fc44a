"""ConSpec on other algorithms of RLlib, by names that experiment files know."""

from __future__ import annotations

from ray.rllib.algorithms.appo import APPO
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.algorithms.sac import SAC

from rllib_conspec.algorithm.with_reward_model import with_reward_model

ConSpecAPPO = with_reward_model(APPO, "conspec")
ConSpecIMPALA = with_reward_model(IMPALA, "conspec")
ConSpecDQN = with_reward_model(DQN, "conspec")
ConSpecSAC = with_reward_model(SAC, "conspec")
ConSpecAPPOConfig = type(ConSpecAPPO.get_default_config())
ConSpecIMPALAConfig = type(ConSpecIMPALA.get_default_config())
ConSpecDQNConfig = type(ConSpecDQN.get_default_config())
ConSpecSACConfig = type(ConSpecSAC.get_default_config())

# Checkpoints name these classes instead of holding copies of them.
for _algorithm in (ConSpecAPPO, ConSpecIMPALA, ConSpecDQN, ConSpecSAC):
    _algorithm.__module__ = type(_algorithm.get_default_config()).__module__ = __name__
