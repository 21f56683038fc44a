"""What a Decision Transformer can be told, and one line for what it cannot."""

import pytest
from planted_game import Coins, coins_config

from rllib_conspec.algorithm import DecisionTransformerConfig
from rllib_conspec.errors import OptionError

KEYS = "rllib_conspec:MultiKeyToDoor-v0"


def test_what_is_asked_for_comes_from_the_recordings_or_the_user(recording):
    config = coins_config(recording)
    config.validate()
    assert config.target == 6.0 and config._recorded.episodes == 400
    asked = coins_config(recording, target_return=2.5)
    asked.validate()
    assert asked.target == 2.5
    uniform = coins_config(recording, labels="uniform")
    uniform.validate()
    assert (uniform.target, uniform._recorded.scale) == (1.0, 1.0)
    several = coins_config([recording, recording])
    several.validate()
    assert several._recorded.episodes == 800


@pytest.mark.parametrize(
    ("options", "option", "says"),
    [
        ({"recordings": None}, "recordings", "learns from recorded episodes"),
        ({"recordings": "none.rec"}, "recordings", "there is no file"),
        ({"labels": "returns"}, "labels", 'Did you mean "return"'),
        ({"dropout": 1.0}, "dropout", "below 1"),
        ({"heads": 3}, "heads", "3 do not divide encoder_dim, which is 32"),
        ({"context": 0}, "context", "at least 1"),
    ],
)
def test_wrong_options(recording, options, option, says):
    config = coins_config(**({"recordings": recording} | options))
    with pytest.raises(OptionError, match=says) as error:
        config.validate()
    assert error.value.option == option


def test_recordings_of_another_environment(recording):
    config = (
        DecisionTransformerConfig().environment(KEYS).decision_transformer(recordings=recording)
    )
    with pytest.raises(OptionError, match=r"coins.rec is of .*Coins, not of .*MultiKeyToDoor"):
        config.validate()


def test_what_it_cannot_live_with(recording):
    paid = coins_config(recording).rewards(models={"rnd": {}})
    with pytest.raises(OptionError, match="there is nobody to pay"):
        paid.validate()
    many = coins_config(recording).env_runners(num_envs_per_env_runner=4)
    with pytest.raises(OptionError, match="short episodes would be counted more often"):
        many.validate()


class Dial(Coins):
    import gymnasium

    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def step(self, action):
        return super().step(0)


def test_continuous_actions(recording):
    config = coins_config(recording).environment(Dial)
    with pytest.raises(OptionError, match="env: has continuous actions"):
        config.validate()


def test_sizes_on_atari():
    config = DecisionTransformerConfig().rewards(preset="atari")
    assert (config.context, config.blocks, config.heads, config.lr) == (30, 6, 8, 6e-4)
    assert config.network_sizes == {"blocks": 6, "heads": 8}
    keys = DecisionTransformerConfig()
    assert (keys.context, keys.blocks, keys.dropout, keys.weight_decay) == (20, 3, 0.1, 1e-4)
    assert keys.lr == 2e-4
