"""Networks that do not fit what they see, or are larger than memory, before any is built."""

import math

import pytest

from rllib_conspec import ConSpecConfig
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.checks.networks import count_parameters
from rllib_conspec.cli.checks.validate import validate


@pytest.fixture(scope="module")
def config():
    config = ConSpecConfig().environment("CartPole-v1").rewards(models={"rnd": {"dim": 8}})
    config.validate()
    return config


def count(config):
    return count_parameters(config, (config.facts.observation_space, config.facts.action_space))


def test_every_network_is_counted_under_the_option_that_makes_it_large(config):
    config = config.copy(copy_frozen=False).rl_module(
        model_config={"encoder_dim": 64, "core_dim": 16}
    )
    config.conspec(encoder_dim=500)
    counts = count(config)
    assert list(counts) == [
        "config.model_config.encoder_dim",
        "config.conspec.encoder_dim",
        "config.reward_models.rnd.dim",
    ]
    built = config.get_rl_module_spec(
        spaces={"default_policy": (config.facts.observation_space, config.facts.action_space)}
    ).build()
    assert counts["config.model_config.encoder_dim"] == sum(p.numel() for p in built.parameters())
    assert min(counts.values()) > 0


def test_what_torch_cannot_count_is_infinite(config):
    config = config.copy(copy_frozen=False)
    for dim in (10**10, 10**20):
        config.rl_module(model_config={"encoder_dim": dim})
        assert count(config)["config.model_config.encoder_dim"] == math.inf


def test_a_network_that_does_not_fit_the_observations(refused):
    flags = ["--run", "ConSpec", "--env", "CartPole-v1", "--config"]
    line = refused("train", *flags, "{model_config: {encoder: conv}}")
    assert line.startswith("--config: model_config.encoder: 'conv' needs pictures")
    line = refused("train", *flags, "{conspec: {encoder: conv}}")
    assert line.startswith("--config: conspec.encoder: 'conv' needs pictures")
    line = refused("train", *flags, "{reward_models: {rnd: {encoder: conv}}}")
    assert line.startswith("--config: reward_models.rnd.encoder: 'conv' needs pictures")


def test_a_network_too_large_for_this_machine_may_train_on_another():
    config = {"model_config": {"fcnet_hiddens": [1000000, 1000000]}}
    validate(Experiment(name="x", run="PPO", env="CartPole-v1", config=config), here=False)
