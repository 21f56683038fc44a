"""Names and types of the keys of `config`; tests/cli/checks/test_validate.py goes by command."""

import pytest
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig

from rllib_conspec import (
    ConSpecAPPOConfig,
    ConSpecConfig,
    ConSpecDQNConfig,
    ConSpecSACConfig,
    WholeEpisodePPOConfig,
)
from rllib_conspec.cli.checks.config_keys import check_config
from rllib_conspec.errors import OptionError


def mistake(config, default):
    with pytest.raises(OptionError) as raised:
        check_config(config, default)
    return str(raised.value)


def test_schedules_words_and_none_are_taken_where_rllib_takes_them():
    for config in (
        {"lr": [[0, 1e-3], [1000, 1e-4]]},
        {"grad_clip": None},
        {"num_cpus_per_learner": "auto"},
        {"lambda": 0.9},
        {"seed": {"grid_search": [1, 2]}},
    ):
        check_config(config, PPOConfig())


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"gama": 1}, 'config.gama: unknown option. Did you mean "gamma"?'),
        ({"gamma": "high"}, 'config.gamma: expected a number or null, got "high".'),
        ({"gamma": {"grid_search": [0.9, 1.1]}}, "config.gamma: must be at most 1, got 1.1."),
        ({"lr": {"grid_search": 3}}, "config.lr: grid_search needs a list of values, got 3."),
        ({"seed": -1}, "config.seed: must be at least 0, got -1."),
        ({"env_config": [1]}, "config.env_config: expected a mapping, got [1]."),
        ({"use_gae": 1}, "config.use_gae: expected true or false or null, got 1."),
        ({"_disable_x": 1}, "config._disable_x: unknown option."),
    ],
)
def test_mistakes(config, line):
    assert mistake(config, PPOConfig()).startswith(line)


def test_reward_models_are_taken_by_configurations_that_have_them():
    models = {"reward_models": {"rnd": {}}, "success": "goal", "preset": "paper"}
    check_config(models, WholeEpisodePPOConfig())
    check_config(models | {"conspec": {}}, ConSpecConfig())
    assert mistake({"conspec": {}}, WholeEpisodePPOConfig()) == (
        "config.conspec: unknown option. Write it as reward_models: {conspec: …}."
    )
    for section in ("reward_models", "conspec"):
        assert mistake({section: 3}, ConSpecConfig()) == (
            f"config.{section}: expected a mapping, got 3."
        )


def test_a_model_given_to_an_algorithm_without_any():
    line = "config.{}: this algorithm takes no reward models; use run: {}."
    assert mistake({"conspec": {}}, PPOConfig()) == line.format("conspec", "ConSpec")
    assert mistake({"rnd": {}}, PPOConfig()) == line.format("rnd", "ConSpec or WholeEpisodePPO")
    assert mistake({"conspec": {}}, APPOConfig()) == line.format("conspec", "ConSpecAPPO")
    assert mistake({"conspec": {}}, SACConfig()) == line.format("conspec", "ConSpecSAC")


def test_a_model_given_to_an_algorithm_that_can_have_none():
    assert mistake({"conspec": {}}, BCConfig()) == (
        "config.conspec: this algorithm takes no reward models; it learns from recorded data and "
        "plays no episodes that could be paid."
    )


@pytest.mark.parametrize("config_class", [ConSpecAPPOConfig, ConSpecDQNConfig, ConSpecSACConfig])
def test_keys_of_other_algorithms_with_reward_models(config_class):
    config = config_class()
    own = {ConSpecAPPOConfig: {"clip_param": 0.1}, ConSpecDQNConfig: {"n_step": 3}}
    check_config({"conspec": {"num_prototypes": 4}, **own.get(config_class, {})}, config)
    assert mistake({"conspecc": {}}, config).endswith('unknown option. Did you mean "conspec"?')
    assert mistake({"episodes_per_updates": 3}, config).endswith(
        'unknown option. Did you mean "episodes_per_update"?'
    )


def test_what_a_configuration_finds_out_by_itself_cannot_be_given():
    assert mistake({"facts": {}}, ConSpecConfig()).startswith("config.facts: unknown option.")
