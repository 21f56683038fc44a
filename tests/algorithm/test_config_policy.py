"""Configuration of the policy: the options of its networks, and of auxiliary losses."""

import pytest
from configs import model_of, refused
from ray.rllib.algorithms.appo import APPO
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from runners import Counting
from tiny import clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig, with_reward_model
from rllib_conspec.errors import OptionError


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("core_dims", 8),
        ("encoder", 3),
        ("encoder", "cnv"),
        ("core_dim", "512"),
        ("core_dim", True),
        ("core_dim", -1),
        ("core", "lstn"),
        ("encoder_dim", 0),
        ("core_options", 3),
    ],
)
def test_model_config(option, value):
    config = keys_config()
    config.rl_module(model_config={option: value})
    refused(option, config.validate)


def test_misspelt_model_config_is_answered_with_the_nearest():
    config = keys_config().rl_module(model_config={"encoder_dims": 3})
    assert 'Did you mean "encoder_dim"?' in str(refused("encoder_dims", config.validate))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"slot": 3}, 'core_options.slot: unknown option. Did you mean "slots"?'),
        ({"slots": "many"}, "core_options.slots: must be a whole number"),
    ],
)
def test_options_of_the_core(options, says):
    config = keys_config().rl_module(model_config={"core": "rma", "core_options": options})
    with pytest.raises(OptionError) as error:
        config.validate()
    assert says in str(error.value)


def test_a_core_that_reads_what_happened_last_is_refused_where_nobody_tells_it():
    config = with_reward_model(APPO, "rnd").get_default_config().environment("CartPole-v1")
    config.rl_module(model_config={"core": "rma"})
    assert "run WholeEpisodePPO" in str(refused("core", config.validate))
    config = plain_config().rl_module(model_config={"core": "rma"})
    config.callbacks(Counting)
    assert "callbacks of your own" in str(refused("core", config.validate))


def test_an_auxiliary_loss_for_another_core_is_refused():
    config = plain_config().training(auxiliary={"reconstruct": {}})
    error = refused("reconstruct", config.validate)
    assert str(error) == (
        "auxiliary.reconstruct: is for another core: set model_config.core to rma."
    )


def test_model_config_of_rllib_is_refused_by_name():
    config = keys_config().rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    with pytest.raises(OptionError, match="model_config"):
        config.validate()


def test_update_from_dict_merges_model_config():
    config = keys_config().update_from_dict({"model_config": {"core_dim": 4}})
    assert {k: config.model_config[k] for k in ("encoder", "encoder_dim", "core_dim")} == {
        "encoder": "conv",
        "encoder_dim": 8,
        "core_dim": 4,
    }


# --- auxiliary losses -----------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-0.1, "a", True, float("nan"), None])
def test_the_weight_of_an_auxiliary_loss_must_be_one(weight):
    error = refused(
        "coeff", plain_config().training(auxiliary={"drac": {"coeff": weight}}).validate
    )
    assert error.option == "auxiliary.drac.coeff"


def test_unknown_auxiliary_loss():
    error = refused("drak", plain_config().training(auxiliary={"drak": {}}).validate)
    assert 'Did you mean "drac"?' in str(error)


def test_an_auxiliary_loss_with_a_model_config_of_rllibs_own_is_answered_by_name():
    config = plain_config().training(auxiliary={"drac": {}})
    refused("model_config", config.rl_module(model_config=DefaultModelConfig()).validate)


def test_other_colours_are_for_pictures():
    config = clock_config(WholeEpisodePPOConfig).training(auxiliary={"drac": {}})
    refused("coeff", config.validate)


def test_tvt_without_rma_is_answered_in_one_line():
    config = plain_config().rewards(models={"tvt": {}})
    with pytest.raises(OptionError) as error:
        model_of(config).check()
    assert str(error.value) == (
        "tvt: reads read_strengths, which the policy's core does not give: set model_config.core "
        "to rma."
    )
    model_of(config.rl_module(model_config={"core": "rma"})).check()
