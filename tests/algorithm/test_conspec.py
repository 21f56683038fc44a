"""ConSpec and its baseline by their names."""

import subprocess
import sys

from ray.rllib.algorithms.ppo import PPO
from ray.tune.registry import get_trainable_cls

from rllib_conspec import (
    ConSpec,
    ConSpecConfig,
    WholeEpisodePPO,
    WholeEpisodePPOConfig,
)


def test_names_known_to_tune():
    assert get_trainable_cls("ConSpec") is ConSpec
    assert get_trainable_cls("WholeEpisodePPO") is WholeEpisodePPO


def test_default_configurations():
    assert type(ConSpec.get_default_config()) is ConSpecConfig
    assert type(WholeEpisodePPO.get_default_config()) is WholeEpisodePPOConfig
    assert ConSpecConfig().algo_class is ConSpec
    assert WholeEpisodePPOConfig().algo_class is WholeEpisodePPO
    assert issubclass(ConSpec, PPO)


def test_importing_the_package_does_not_import_ray_or_torch():
    """Programs that only want the tasks stay light."""
    code = "import sys, rllib_conspec; print({'ray', 'torch'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
