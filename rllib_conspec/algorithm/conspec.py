"""The short form: ConSpec on PPO, the paper's main system, by its own name."""

from __future__ import annotations

from typing import Any

from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.ppo import WholeEpisodePPO, WholeEpisodePPOConfig


class ConSpecConfig(WholeEpisodePPOConfig):
    """Configuration of ConSpec on PPO.

    >>> config = (
    ...     ConSpecConfig()
    ...     .environment("rllib_conspec:MultiKeyToDoor-v0", env_config={"keys": 4})
    ...     .conspec(num_prototypes=8, intrinsic_coeff=0.2)
    ... )
    """

    short_forms = ("conspec",)

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or ConSpec)
        self.conspec()

    def conspec(self, **options: Any) -> ConSpecConfig:
        """Set options of ConSpec; docs/options.md lists them."""
        return self.rewards(models={"conspec": options})


class ConSpec(WholeEpisodePPO):
    """PPO that is paid for critical steps found by contrastive retrospection."""

    @classmethod
    @override(WholeEpisodePPO)
    def get_default_config(cls) -> ConSpecConfig:
        return ConSpecConfig()
