"""Algorithms that cannot be given reward models are answered by one line."""

import pytest
from ray.rllib.algorithms.bc import BC
from ray.rllib.algorithms.cql import CQL
from ray.rllib.algorithms.dqn import DQN, DQNConfig
from ray.rllib.algorithms.iql import IQL
from ray.rllib.algorithms.marwil import MARWIL
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner

from rllib_conspec import ConSpecDQNConfig, with_reward_model
from rllib_conspec.errors import OptionError


def variant(change):
    """DQN, changed by whoever derived from it."""

    class Config(DQNConfig):
        def __init__(self, algo_class=None):
            super().__init__(algo_class=algo_class or Mine)
            change(self)

    class Mine(DQN):
        @classmethod
        def get_default_config(cls):
            return Config()

    return Mine


@pytest.mark.parametrize("base", [BC, MARWIL, CQL, IQL])
def test_offline_algorithms(base):
    with pytest.raises(OptionError, match="learns from recorded data") as raised:
        with_reward_model(base, "conspec")
    assert raised.value.option == base.__name__


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda c: c.api_stack(
                enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
            ),
            "old API stack",
        ),
        (lambda c: setattr(c, "framework_str", "tf2"), "written for tf2; they need torch"),
        (
            lambda c: setattr(c, "env_runner_cls", MultiAgentEnvRunner),
            "rollout worker of its own, MultiAgentEnvRunner",
        ),
        (
            lambda c: setattr(c, "get_default_learner_class", lambda: object),
            "its learner is not a TorchLearner",
        ),
    ],
)
def test_algorithms_of_another_kind(change, says):
    with pytest.raises(OptionError, match=says) as raised:
        with_reward_model(variant(change), "conspec")
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("Mine: cannot be given reward models: ")


def test_what_is_no_algorithm():
    with pytest.raises(OptionError, match="int: is not an RLlib algorithm"):
        with_reward_model(int, "conspec")


def test_an_algorithm_of_ones_own_is_extended():
    mine = variant(lambda config: config.training(lr=0.125))
    extended = with_reward_model(mine, "conspec")
    assert issubclass(extended, mine)
    assert extended.__name__ == "ConSpecMine"
    assert extended.get_default_config().lr == 0.125


@pytest.mark.parametrize(
    ("change", "option"),
    [
        (lambda c: c.api_stack(enable_rl_module_and_learner=False), "enable_rl_module_and_learner"),
        (lambda c: c.framework("tf2"), "framework"),
        (lambda c: c.multi_agent(policies={"one", "other"}), "policies"),
        (lambda c: c.environment(MultiAgentEnv), "env"),
        (lambda c: c.offline_data(input_="somewhere"), "input_"),
    ],
)
def test_settings_that_reward_models_cannot_live_with(change, option):
    config = ConSpecDQNConfig().environment("CartPole-v1")
    change(config)
    with pytest.raises(OptionError) as raised:
        config.validate()
    assert raised.value.option == option
