"""Configuration: what is wrong is refused by name, what is right survives every way of copying."""

import pickle

import pytest
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from tiny import KEYS, Clock, clock_config, keys_config, plain_config

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.policy import EpisodePolicy
from rllib_conspec.retrospection.options import ConSpecOptions


def refused(option, action):
    """The `OptionError` that `action` raises, which must name `option`."""
    with pytest.raises(OptionError) as caught:
        action()
    assert caught.value.option.split(".")[-1] == option, str(caught.value)
    return caught.value


# --- ConSpec's options --------------------------------------------------------------------------


def test_unknown_conspec_option_is_answered_with_the_nearest():
    error = refused("num_prototype", lambda: ConSpecConfig().conspec(num_prototype=3))
    assert 'Did you mean "num_prototypes"?' in str(error)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_prototypes", 0),
        ("num_prototypes", "8"),
        ("num_prototypes", True),
        ("num_prototypes", 2.5),
        ("lr", "fast"),
        ("threshold", 1.5),
        ("freeze", 1),
        ("intrinsic", "windows"),
        ("success", "sometimes"),
        ("success", "no.such.module:function"),
        ("memory_batch", 99),
        ("min_successes", 17),
    ],
)
def test_impossible_conspec_options(option, value):
    refused(option, lambda: ConSpecConfig().conspec(**{option: value}))
    refused(option, lambda: ConSpecConfig().update_from_dict({"conspec": {option: value}}))


def test_a_refused_option_changes_nothing():
    config = ConSpecConfig().conspec(num_prototypes=5)
    refused("num_prototypes", lambda: config.conspec(num_prototypes=0, lr=1.0))
    assert config.get_reward_model().options == ConSpecOptions(num_prototypes=5)


def test_options_set_behind_the_setter_are_checked_too():
    config = keys_config()
    config.conspec_options = {"num_prototypes": 0}
    refused("num_prototypes", config.validate)


def test_conspec_merges():
    config = ConSpecConfig().conspec(num_prototypes=5).conspec(lr=0.5, num_prototypes=6)
    config.update_from_dict({"conspec": {"window": 1}})
    assert config.get_reward_model().options == ConSpecOptions(num_prototypes=6, lr=0.5, window=1)


def test_gamma_of_the_algorithm_is_the_gamma_of_the_potential():
    assert ConSpecConfig().training(gamma=0.5).get_reward_model().gamma == 0.5


# --- batches of whole episodes ------------------------------------------------------------------


@pytest.mark.parametrize("config", [keys_config, plain_config])
@pytest.mark.parametrize("value", [0, -1, 2.0, "4", True, None])
@pytest.mark.parametrize("option", ["per_batch", "per_minibatch"])
def test_numbers_of_episodes(config, option, value):
    config = config().episodes(**{option: value})
    refused(f"episodes_{option}", config.validate)


def test_minibatch_larger_than_batch():
    error = refused(
        "episodes_per_minibatch", keys_config().episodes(per_batch=4, per_minibatch=5).validate
    )
    assert "5" in str(error)
    assert "4" in str(error)
    keys_config().episodes(per_batch=4, per_minibatch=4).validate()


def test_truncated_episodes():
    refused("batch_mode", keys_config().env_runners(batch_mode="truncate_episodes").validate)


@pytest.mark.parametrize("value", [0, -3, "long", 2.5])
def test_longest_episode_must_be_a_number(value):
    refused("max_episode_steps", keys_config().episodes(max_steps=value).validate)


def test_longest_episode_that_nobody_knows():
    refused("max_episode_steps", keys_config().environment(Clock).validate)
    refused("max_episode_steps", keys_config().environment("registered_with_tune").validate)


def test_longest_episode_is_asked_of_the_environment():
    config = keys_config()
    config.validate()
    assert config.max_episode_steps == 65
    # One step more than an episode has: RLlib adds one for the value after the last.
    assert config.minibatch_size == 4 * 66
    assert config.model_config["max_seq_len"] == 66


def vector_task(env):
    """A task whose observations are vectors."""
    config = ConSpecConfig().environment(env).conspec(encoder="mlp")
    return config.rl_module(model_config={"encoder": "mlp"})


def test_longest_episode_of_gymnasiums_own_environments():
    config = vector_task("Acrobot-v1")
    config.validate()
    assert config.max_episode_steps == 500
    assert config.gym_env_vectorize_mode == "sync"


def test_longest_episode_follows_a_change_of_task():
    """A configuration that was built once and is then changed must not remember the first task."""
    config = keys_config()
    config.validate()
    other = config.copy().environment(env_config={"keys": 3})
    other.validate()
    fresh = keys_config().environment(env_config={"keys": 3})
    fresh.validate()
    assert other.max_episode_steps == fresh.max_episode_steps > config.max_episode_steps


def test_how_environments_are_vectorised_follows_a_change_of_task():
    config = vector_task(Clock).episodes(max_steps=20)
    config.validate()
    other = config.copy().environment(KEYS).episodes(max_steps=65)
    other.validate()
    assert other.gym_env_vectorize_mode == "vector_entry_point"


def test_a_users_choice_of_vectorisation_is_kept():
    config = vector_task("Acrobot-v1").env_runners(gym_env_vectorize_mode="async")
    config.validate()
    assert config.gym_env_vectorize_mode == "async"


# --- the policy's options -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("gru_dims", 8),
        ("encoder", 3),
        ("encoder", "cnv"),
        ("gru_dim", "512"),
        ("gru_dim", True),
        ("gru_dim", -1),
        ("encoder_dim", 0),
    ],
)
def test_model_config(option, value):
    config = keys_config()
    config.rl_module(model_config={option: value})
    refused(option, config.validate)


def test_misspelt_model_config_is_answered_with_the_nearest():
    config = keys_config().rl_module(model_config={"encoder_dims": 3})
    assert 'Did you mean "encoder_dim"?' in str(refused("encoder_dims", config.validate))


def test_model_config_of_rllib_is_refused_by_name():
    config = keys_config().rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    with pytest.raises(OptionError, match="model_config"):
        config.validate()


def test_update_from_dict_merges_model_config():
    config = keys_config().update_from_dict({"model_config": {"gru_dim": 4}})
    assert {k: config.model_config[k] for k in ("encoder", "encoder_dim", "gru_dim")} == {
        "encoder": "conv",
        "encoder_dim": 8,
        "gru_dim": 4,
    }


def test_update_from_dict_leaves_the_dict_alone():
    given = {"conspec": {"window": 1}, "model_config": {"gru_dim": 4}, "lr": 0.1}
    ConSpecConfig().update_from_dict(given)
    assert given == {"conspec": {"window": 1}, "model_config": {"gru_dim": 4}, "lr": 0.1}


def test_yaml_form_and_python_form_are_the_same():
    python = (
        ConSpecConfig()
        .environment(KEYS, env_config={"keys": 2})
        .episodes(per_batch=6, per_minibatch=3)
        .env_runners(num_env_runners=3)
        .rl_module(model_config={"gru_dim": 4})
        .conspec(num_prototypes=2)
        .training(lr=0.1, gamma=0.9)
        .debugging(seed=7)
    )
    yaml = ConSpecConfig().update_from_dict(
        {
            "env": KEYS,
            "env_config": {"keys": 2},
            "episodes_per_batch": 6,
            "episodes_per_minibatch": 3,
            "num_env_runners": 3,
            "model_config": {"gru_dim": 4},
            "conspec": {"num_prototypes": 2},
            "lr": 0.1,
            "gamma": 0.9,
            "seed": 7,
        }
    )
    assert comparable(python) == comparable(yaml)


# --- copies -------------------------------------------------------------------------------------


def comparable(config):
    """All settings; "class" is a note that RLlib's own `from_state` leaves behind."""
    return {k: str(v) for k, v in config.to_dict().items() if k != "class"}


@pytest.mark.parametrize("make", [keys_config, plain_config])
@pytest.mark.parametrize(
    "through",
    [
        lambda c: c.copy(),
        lambda c: pickle.loads(pickle.dumps(c)),
        lambda c: type(c)().update_from_dict(c.to_dict()),
        lambda c: type(c).from_dict(c.to_dict()),
        lambda c: type(c).from_state(c.get_state()),
    ],
    ids=["copy", "pickle", "update_from_dict", "from_dict", "state"],
)
def test_copies_are_equal_and_apart(make, through):
    config = make().training(lr=0.125).episodes(per_batch=12)
    twin = through(config)
    assert type(twin) is type(config)
    assert comparable(twin) == comparable(config)
    assert twin.model_config["gru_dim"] == 8
    assert twin.episodes_per_batch == 12
    if make is keys_config:
        assert twin.get_reward_model().options == config.get_reward_model().options
        before = config.get_reward_model().options
        twin.conspec(num_prototypes=7)
        assert config.get_reward_model().options == before
    twin.validate()


@pytest.mark.parametrize("weight", [-0.1, "a", True, float("nan"), None])
def test_colour_coeff_must_be_a_weight(weight):
    refused("colour_coeff", lambda: plain_config().training(colour_coeff=weight).validate())


def test_colour_coeff_with_a_model_config_of_rllibs_own_is_answered_by_name():
    config = plain_config().training(colour_coeff=0.1).rl_module(model_config=DefaultModelConfig())
    refused("model_config", config.validate)


def test_colour_coeff_is_for_pictures():
    config = clock_config(WholeEpisodePPOConfig).training(colour_coeff=0.1)
    refused("colour_coeff", config.validate)


def test_defaults_are_the_papers():
    config = ConSpecConfig()
    assert isinstance(config, PPOConfig)
    assert config.get_reward_model().options == ConSpecOptions()
    assert WholeEpisodePPOConfig().get_reward_model() is None
    for name, value in {
        "lr": 2e-4,
        "adam_eps": 1e-5,
        "gamma": 0.99,
        "lambda_": 0.95,
        "clip_param": 0.08,
        "vf_loss_coeff": 0.5,
        "entropy_coeff": 0.02,
        "num_epochs": 4,
        "grad_clip": 0.5,
        "use_kl_loss": False,
        "colour_coeff": 0,
        "episodes_per_batch": 16,
        "episodes_per_minibatch": 4,
        "batch_mode": "complete_episodes",
    }.items():
        assert getattr(config, name) == value, name
    # RLlib clips the squared error of the value function; the paper does not.
    assert config.vf_clip_param > 1e9
    assert issubclass(config.algo_class, PPO)
    assert config.env_runner_cls is EpisodeRunner
    assert config.get_default_rl_module_spec().module_class is EpisodePolicy
