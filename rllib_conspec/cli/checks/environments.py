"""Environments as algorithms see them: RLlib's own as they are, ours in the form that fits them.

Our configurations look at their environment by themselves; here is what the rest needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym

from rllib_conspec.environments import find, look, make_single
from rllib_conspec.environments.arguments import arguments, check_arguments
from rllib_conspec.environments.finding import Env, name_of
from rllib_conspec.errors import OptionError

Spaces = tuple[Any, Any]  # of observations and actions
Maker = Callable[..., gym.Env]  # takes a render_mode, or nothing


def check_environment(env: Env, env_config: Mapping[str, Any]) -> Spaces:
    """Observation and action space; an OptionError names `env` or `config.env_config.<key>`."""
    spec = find(env)
    try:
        check_arguments(spec, env_config)
        made = make(env, env_config)
        made.close()
    except OptionError as error:
        raise error.within("config.env_config") from error
    except Exception as error:  # whatever the environment raises
        text = " ".join(str(error).split()) or type(error).__name__
        raise OptionError("config.env_config", f"{name_of(env)} cannot be built: {text}") from error
    return made.observation_space, made.action_space


def look_for(config: Any) -> tuple[Maker, Spaces]:
    """What makes a single environment as this algorithm's policy sees it, and its spaces."""
    from ray.rllib.env.env_context import EnvContext

    from rllib_conspec.algorithm.config_episodes import EpisodesConfig

    # Classes that are written for RLlib may ask it for the number of their worker.
    env, env_config = config.env, EnvContext(config.env_config, worker_index=0)
    if not isinstance(config, EpisodesConfig):
        return partial(make, env, env_config), check_environment(env, env_config)
    try:
        facts = look(
            env,
            env_config,
            max_episode_steps=config.max_episode_steps,
            observation_key=config.observation_key,
        )
    except OptionError as error:
        raise in_experiment(error) from error
    one = partial(make_single, env, env_config, facts, observation_key=config.observation_key)
    return lambda render_mode=None: one(render_mode=render_mode), (
        facts.observation_space,
        facts.action_space,
    )


def in_experiment(error: OptionError) -> OptionError:
    """An error that a configuration found, with its path in an experiment file."""
    return error if error.option == "env" else error.within("config")


def make(env: Env, env_config: Mapping[str, Any], render_mode: str | None = None) -> gym.Env:
    spec = find(env)
    return gym.make(spec, **arguments(spec, env_config, render_mode))


def register(env: Any) -> None:
    """Let RLlib's workers make what only we can find: `module:Class`."""
    from ray.tune.registry import register_env

    if isinstance(env, str) and ":" in env and find(env).id != env.rpartition(":")[2]:
        register_env(env, partial(make, env))
