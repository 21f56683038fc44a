"""Looking at configurations: what they refuse, and what they come to."""

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import options_of


def refused(option, action):
    """The `OptionError` that `action` raises, which must name `option`."""
    with pytest.raises(OptionError) as caught:
        action()
    assert caught.value.option.split(".")[-1] == option, str(caught.value)
    return caught.value


def conspec_of(config):
    """The options of ConSpec that this configuration comes to."""
    return options_of("conspec", config.reward_models["conspec"], config.preset)


def model_of(config):
    config.validate()
    return config.get_reward_model(config.facts.observation_space, config.facts.action_space)
