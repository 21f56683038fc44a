"""Configuration: what is wrong is refused by name, what is right survives every way of copying."""

import pickle

import pytest
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from tiny import CONSTANT, KEYS, Clock, Constant, Parts, clock_config, keys_config, plain_config

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import options_of
from rllib_conspec.reward_models.conspec.model import ConSpecModel
from rllib_conspec.reward_models.conspec.options import PRESETS, ConSpecOptions


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
        ("memory_batch", 999),
        ("min_successes", 999),
    ],
)
def test_impossible_conspec_options(option, value):
    refused(option, lambda: ConSpecConfig().conspec(**{option: value}))
    refused(option, lambda: ConSpecConfig().update_from_dict({"conspec": {option: value}}))


def conspec_of(config):
    """The options of ConSpec that this configuration comes to."""
    return options_of("conspec", config.reward_models["conspec"], config.preset)


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


def model_of(config):
    config.validate()
    return config.get_reward_model(config.facts.observation_space, config.facts.action_space)


# --- what counts as success ---------------------------------------------------------------------


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


# --- presets ------------------------------------------------------------------------------------


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


def test_every_learner_needs_an_episode():
    config = keys_config().episodes(per_batch=2, per_minibatch=1).learners(num_learners=3)
    refused("episodes_per_batch", config.validate)
    config.learners(num_learners=2).validate()


def test_truncated_episodes():
    refused("batch_mode", keys_config().env_runners(batch_mode="truncate_episodes").validate)


@pytest.mark.parametrize("value", [0, -3, "long", 2.5])
def test_longest_episode_must_be_a_number(value):
    refused("max_episode_steps", keys_config().episodes(max_steps=value).validate)


def test_longest_episode_that_nobody_knows():
    refused("max_episode_steps", clock_config().episodes(max_steps=None).validate)


def test_environment_that_nobody_knows():
    refused("env", keys_config().environment("registered_nowhere").validate)
    refused("env", keys_config().environment("tiny:Sundial").validate)


def test_longest_episode_is_asked_of_the_environment():
    config = keys_config()
    config.validate()
    assert config.facts.max_episode_steps == 65
    # One step more than an episode has: RLlib adds one for the value after the last.
    assert config.minibatch_size == 4 * 66
    assert config.model_config["max_seq_len"] == 66


def vector_task(env):
    """A task whose observations are vectors."""
    return ConSpecConfig().environment(env)


def test_longest_episode_of_gymnasiums_own_environments():
    config = vector_task("Acrobot-v1")
    config.validate()
    assert config.facts.max_episode_steps == 500
    assert not config.facts.vectorised


def test_longest_episode_follows_a_change_of_task():
    """A configuration that was built once and is then changed must not remember the first task."""
    config = keys_config()
    config.validate()
    other = config.copy().environment(env_config={"keys": 3})
    other.validate()
    fresh = keys_config().environment(env_config={"keys": 3})
    fresh.validate()
    assert other.facts == fresh.facts
    assert other.facts.max_episode_steps > config.facts.max_episode_steps


def test_how_environments_are_vectorised_follows_a_change_of_task():
    config = vector_task(Clock).episodes(max_steps=20)
    config.validate()
    assert not config.facts.vectorised
    other = config.copy().environment(KEYS).episodes(max_steps=65)
    other.validate()
    assert other.facts.vectorised


@pytest.mark.parametrize(("given", "used"), [("async", "async"), ("sync", "sync"), (None, "auto")])
def test_a_users_choice_of_vectorisation_is_kept(given, used):
    config = keys_config()
    if given is not None:
        config.env_runners(gym_env_vectorize_mode=given)
    config.validate()
    assert config.vectorize_mode == used
    assert config.facts.vectorised == (given is None)


def test_dict_observations_need_a_key_only_where_they_are_no_vector():
    config = clock_config(env=Parts)
    config.validate()
    assert config.facts.observation_space.shape == (4,)
    config.episodes(observation_key="works").validate()
    assert config.facts.observation_space.shape == (2,)
    refused("observation_key", config.episodes(observation_key="hands").validate)


# --- the policy's options -----------------------------------------------------------------------


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
    config = keys_config().update_from_dict({"model_config": {"core_dim": 4}})
    assert {k: config.model_config[k] for k in ("encoder", "encoder_dim", "core_dim")} == {
        "encoder": "conv",
        "encoder_dim": 8,
        "core_dim": 4,
    }


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


# --- auxiliary losses ---------------------------------------------------------------------------


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


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, True, "much"])
def test_epsilon_is_a_share(epsilon):
    with pytest.raises(OptionError, match="epsilon: must be a number from 0 to 1"):
        keys_config().episodes(epsilon=epsilon).validate()


def test_epsilon_is_for_discrete_actions_and_our_own_loop():
    config = keys_config().episodes(epsilon=0.1)
    config.validate()
    config.callbacks(on_episode_end=lambda **_: None)
    with pytest.raises(OptionError, match="epsilon: does not work with connectors or callbacks"):
        config.validate()
    config = keys_config().environment("Pendulum-v1").episodes(epsilon=0.1)
    config.env_config = {}  # RLlib would lay another one over it
    config.rl_module(model_config={"encoder": "mlp"})
    with pytest.raises(OptionError, match="epsilon: needs Discrete actions"):
        config.validate()
