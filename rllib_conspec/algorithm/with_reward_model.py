"""Reward models for any algorithm of RLlib, or of one's own."""

from __future__ import annotations

from functools import cache

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALA

from rllib_conspec.algorithm.asynchronous import AsynchronousRewardModelAlgorithm
from rllib_conspec.algorithm.config import RewardModelConfig
from rllib_conspec.algorithm.driver import RewardModelAlgorithm
from rllib_conspec.algorithm.extendable import check_algorithm
from rllib_conspec.reward_models import find_model


@cache
def with_reward_model(base: type[Algorithm], *models: str) -> type[Algorithm]:
    """`base` (APPO, IMPALA, DQN, SAC, …) with these reward models: names or import paths.

    The class has a configuration of its own, `base`'s with `.rewards(…)`:

        config = with_reward_model(APPO, "rnd").get_default_config()
        config.rewards(models={"rnd": {"coeff": 0.5}}, success="goal")

    Intrinsic rewards are those of whole episodes, so the pieces that `base` trains on are held back
    until their episode ends. An `OptionError` says why where `base` cannot be given any.
    """
    if not models:
        raise TypeError("with_reward_model needs the name of at least one reward model.")
    check_algorithm(base)
    base_config = type(base.get_default_config())
    driver = AsynchronousRewardModelAlgorithm if issubclass(base, IMPALA) else RewardModelAlgorithm
    name = "".join(find_model(m).__name__.removesuffix("Model") for m in models) + base.__name__

    def init(self, algo_class: type | None = None) -> None:
        super(config_class, self).__init__(algo_class=algo_class or algorithm_class)
        self.rewards(models={model: {} for model in models})

    config_class = type(
        f"{name}Config", (RewardModelConfig, base_config), {"__init__": init, "short_forms": models}
    )
    algorithm_class = type(
        name,
        (driver, base),
        {"get_default_config": classmethod(lambda cls: config_class())},
    )
    return algorithm_class
