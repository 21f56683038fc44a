"""Configuration of batches of whole episodes: their numbers, and the environment's limits."""

import pytest
from configs import refused
from tiny import KEYS, Clock, Parts, clock_config, keys_config, plain_config

from rllib_conspec import ConSpecConfig
from rllib_conspec.errors import OptionError


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
