"""Configuration: what is wrong is refused by name, what is right survives every way of copying."""

import pickle

import pytest
from configs import conspec_of, model_of, refused
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from tiny import CONSTANT, KEYS, Constant, keys_config, plain_config

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.reward_models.conspec.model import ConSpecModel
from rllib_conspec.reward_models.conspec.options import PRESETS, ConSpecOptions

# --- ConSpec's options ----------------------------------------------------------------------------


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
        ("memory_batch", 999),
        ("min_successes", 999),
    ],
)
def test_impossible_conspec_options(option, value):
    refused(option, lambda: ConSpecConfig().conspec(**{option: value}))
    refused(option, lambda: ConSpecConfig().update_from_dict({"conspec": {option: value}}))


def test_a_refused_option_changes_nothing():
    config = keys_config(num_prototypes=5)
    before = conspec_of(config)
    refused("num_prototypes", lambda: config.conspec(num_prototypes=0, lr=1.0))
    assert conspec_of(config) == before


def test_options_set_behind_the_setter_are_checked_too():
    config = keys_config()
    config.reward_models = {"conspec": {"num_prototypes": 0}}
    error = refused("num_prototypes", config.validate)
    assert error.option == "reward_models.conspec.num_prototypes"


def test_conspec_merges():
    config = ConSpecConfig().rewards(preset="paper")
    config.conspec(num_prototypes=5).conspec(lr=0.5, num_prototypes=6)
    config.update_from_dict({"conspec": {"window": 1}})
    assert conspec_of(config) == ConSpecOptions(num_prototypes=6, lr=0.5, window=1)


def test_short_and_long_form_are_the_same():
    short, long = ConSpecConfig(), WholeEpisodePPOConfig()
    short.update_from_dict({"conspec": {"window": 1}})
    long.update_from_dict({"reward_models": {"conspec": {"window": 1}}})
    assert short.reward_models == long.reward_models == {"conspec": {"window": 1}}


def test_models_are_added_to_those_that_are_set():
    config = keys_config().rewards(models={CONSTANT: {"step": 0.5}})
    config.rewards(models={CONSTANT: {"first": 1.0}})
    config.validate()
    assert config.reward_models[CONSTANT] == {"step": 0.5, "first": 1.0}
    assert config.reward_models_of() == {"conspec": ConSpecModel, CONSTANT: Constant}
    error = refused("no_such_model", lambda: config.rewards(models={"no_such_model": {}}))
    assert "conspec" in str(error)
    assert "conspek" not in config.reward_models


def test_gamma_of_the_algorithm_is_the_gamma_of_the_reward_models():
    config = keys_config().training(gamma=0.5)
    assert model_of(config).models["conspec"].setting.gamma == 0.5


# --- what counts as success -----------------------------------------------------------------------


@pytest.mark.parametrize("config", [keys_config, plain_config])
@pytest.mark.parametrize("value", ["sometimes", "no.such.module:function", "tiny:no_such_function"])
def test_impossible_success(config, value):
    refused("success", config(success=value).validate)


@pytest.mark.parametrize("value", ["sparse", "goal", "top_k", "tiny:reached_fifty"])
def test_success_is_said_once_for_every_algorithm(value):
    for config in (ConSpecConfig(), WholeEpisodePPOConfig()):
        config.update_from_dict({"env": KEYS, "env_config": {"keys": 1}, "success": value})
        config.validate()
        assert config.success == value


# --- presets --------------------------------------------------------------------------------------


def test_single_options_are_laid_over_the_preset_in_whatever_order():
    given = {"lr": 0.1, "conspec": {"encoder_dim": 3}, "model_config": {"core_dim": 5}}
    for values in (given | {"preset": "paper"}, {"preset": "paper"} | given):
        config = ConSpecConfig().update_from_dict(values)
        assert config.lr == 0.1
        assert conspec_of(config) == ConSpecOptions(encoder_dim=3)
        assert config.model_config["core_dim"] == 5
        assert config.model_config["encoder_dim"] == 512


def test_the_default_preset_learns_from_few_successes():
    config = ConSpecConfig()
    assert config.preset == "few_successes"
    assert conspec_of(config) == ConSpecOptions(**PRESETS["few_successes"])
    assert config.lr == 5e-4
    assert not config.learn_without_reward
    assert config.num_env_runners == 0


def test_unknown_preset():
    error = refused("preset", lambda: ConSpecConfig().rewards(preset="papers"))
    assert 'Did you mean "paper"?' in str(error)


def test_the_papers_preset():
    config = ConSpecConfig().rewards(preset="paper")
    assert isinstance(config, PPOConfig)
    assert conspec_of(config) == ConSpecOptions()
    assert WholeEpisodePPOConfig().reward_models == {}
    assert model_of(plain_config()) is None
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
        "auxiliary": {},
        "learn_without_reward": True,
        "success": "sparse",
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


# --- copies ---------------------------------------------------------------------------------------


def test_update_from_dict_leaves_the_dict_alone():
    given = {"conspec": {"window": 1}, "model_config": {"core_dim": 4}, "lr": 0.1}
    ConSpecConfig().update_from_dict(given)
    assert given == {"conspec": {"window": 1}, "model_config": {"core_dim": 4}, "lr": 0.1}


def test_yaml_form_and_python_form_are_the_same():
    python = (
        ConSpecConfig()
        .environment(KEYS, env_config={"keys": 2})
        .episodes(per_batch=6, per_minibatch=3)
        .env_runners(num_env_runners=3)
        .rl_module(model_config={"core_dim": 4})
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
            "model_config": {"core_dim": 4},
            "conspec": {"num_prototypes": 2},
            "lr": 0.1,
            "gamma": 0.9,
            "seed": 7,
        }
    )
    assert comparable(python) == comparable(yaml)


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
    assert twin.model_config["core_dim"] == 8
    assert twin.episodes_per_batch == 12
    assert twin.success == config.success
    assert twin.preset == "paper"
    if make is keys_config:
        assert conspec_of(twin) == conspec_of(config)
        before = conspec_of(config)
        twin.conspec(num_prototypes=7)
        assert conspec_of(config) == before
    twin.validate()
