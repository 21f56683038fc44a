"""ConSpec on PPO, the paper's main system, and `with_reward_model` for other algorithms."""

from __future__ import annotations

from functools import cache

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.algorithm import RewardModelAlgorithm
from rllib_conspec.algorithm.config import ConSpecMixinConfig
from rllib_conspec.algorithm.ppo import WholeEpisodePPO, WholeEpisodePPOConfig


class ConSpecConfig(ConSpecMixinConfig, WholeEpisodePPOConfig):
    """Configuration of ConSpec on PPO.

    >>> config = (
    ...     ConSpecConfig()
    ...     .environment("rllib_conspec:MultiKeyToDoor-v0", env_config={"keys": 4})
    ...     .conspec(num_prototypes=8, intrinsic_coeff=0.2)
    ... )
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or ConSpec)


class ConSpec(WholeEpisodePPO):
    """PPO that is paid for critical steps found by contrastive retrospection."""

    @classmethod
    @override(WholeEpisodePPO)
    def get_default_config(cls) -> ConSpecConfig:
        return ConSpecConfig()


@cache
def with_reward_model(base: type[Algorithm]) -> type[Algorithm]:
    """`base` (APPO, IMPALA, DQN, SAC, …) with ConSpec as its reward model.

    The class has a configuration of its own: `with_reward_model(APPO).get_default_config()` is
    APPO's with `.conspec(…)`. Intrinsic rewards are computed for each piece of an episode that a
    worker returns; the window of eqn 2 ends at its borders, so let `rollout_fragment_length` be the
    length of an episode where that matters.
    """
    base_config = type(base.get_default_config())
    name = f"ConSpec{base.__name__}"

    def init(self, algo_class: type | None = None) -> None:
        super(config_class, self).__init__(algo_class=algo_class or algorithm_class)

    config_class = type(f"{name}Config", (ConSpecMixinConfig, base_config), {"__init__": init})
    algorithm_class = type(
        name,
        (RewardModelAlgorithm, base),
        {"get_default_config": classmethod(lambda cls: config_class())},
    )
    return algorithm_class
