"""Environments, one or many, in the form that `look` found."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rllib_conspec.environments.arguments import arguments, entry_point, parameters_of
from rllib_conspec.environments.facts import Facts
from rllib_conspec.environments.finding import Env, find, name_of
from rllib_conspec.environments.observations import shaped
from rllib_conspec.environments.wrappers import SeededResets, TimeLimit
from rllib_conspec.errors import OptionError, did_you_mean

# "auto": the environment's own vector form if there is one and it fits, else "sync".
MODES = ("auto", "sync", "async")


def make_vector(
    env: Env,
    env_config: Mapping[str, Any],
    num_envs: int,
    facts: Facts,
    *,
    observation_key: str | None = None,
    mode: str = "auto",
) -> VectorEnv:
    """`num_envs` environments, stepped together; a finished one starts anew on the next step.

    Environments without a vector form of their own put `reset_seed` into the info of every reset.
    """
    check_mode(mode)
    spec = find(env)
    if facts.vectorised and mode == "auto":
        return shaped(
            build_many(spec, env_config, num_envs, facts.max_episode_steps), observation_key
        )
    one = partial(_seeded, env, env_config, facts.max_episode_steps, observation_key)
    kind = AsyncVectorEnv if mode == "async" else SyncVectorEnv
    made = kind([one] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)
    shape, expected = made.single_observation_space.shape, facts.observation_space.shape
    if shape != expected:  # Atari's vector form shows other pictures than its single form
        made.close()
        raise OptionError(
            "env", f"{name_of(env)} shows {shape} with mode {mode}, {expected} was looked at."
        )
    return made


def make_single(
    env: Env,
    env_config: Mapping[str, Any],
    facts: Facts,
    *,
    observation_key: str | None = None,
    render_mode: str | None = None,
) -> gym.Env:
    """One environment, as the vector environment has them, but `reset` takes seeds as they are:
    with the `reset_seed` of an episode and its actions it plays that episode again.

    If the environment knows no such `render_mode`, it is made without.
    """
    built = build_one(find(env), env_config, facts.max_episode_steps, render_mode=render_mode)
    return shaped(built, observation_key)


def critical_events(env: VectorEnv) -> tuple[str, ...]:
    """Names of the infos that mark steps worth finding, if the environment declares any."""
    inner = env.unwrapped
    if not isinstance(inner, SyncVectorEnv | AsyncVectorEnv):
        return tuple(getattr(inner, "critical_events", ()))
    # Asked first: an attribute that is missing would end the processes of an AsyncVectorEnv.
    if not all(inner.call("has_wrapper_attr", "critical_events")):
        return ()
    return tuple(inner.get_attr("critical_events")[0])


def check_mode(mode: str) -> None:
    if mode not in MODES:
        raise OptionError(
            "mode", f"must be one of {', '.join(MODES)}, not {mode!r}." + did_you_mean(mode, MODES)
        )


def build_one(
    spec: EnvSpec,
    env_config: Mapping[str, Any],
    limit: int | None = None,
    *,
    render_mode: str | None = None,
    check: bool = False,
) -> gym.Env:
    """One environment with raw observations; `check` lets Gymnasium watch its first steps."""
    given = {"disable_env_checker": not check} | arguments(spec, env_config, render_mode)
    # The registered limit is left out and `limit` alone counts: it may also be the higher one.
    env = gym.make(timed(spec, limit), **given | {"max_episode_steps": -1})
    return env if limit is None else TimeLimit(env, limit)


def timed(spec: EnvSpec, limit: int | None) -> EnvSpec:
    """The specification with the longest episode said in it, where the environment keeps its time
    itself: what it does on an episode's last step must come in time.
    """
    if limit is None or "max_episode_steps" not in parameters_of(entry_point(spec)):
        return spec
    spec = copy.copy(spec)  # Gymnasium would take a keyword of this name for its own
    spec.kwargs = {**spec.kwargs, "max_episode_steps": limit}
    return spec


def build_many(
    spec: EnvSpec, env_config: Mapping[str, Any], num_envs: int, limit: int | None
) -> VectorEnv:
    """The environment's own vector form, with raw observations."""
    given = dict(env_config)
    for name in ("max_episode_steps", "disable_env_checker"):  # of gymnasium.make
        given.pop(name, None)
    given |= limit_arguments(spec, env_config, limit) or {}
    return gym.make_vec(spec, num_envs, vectorization_mode="vector_entry_point", **given)


def limit_arguments(
    spec: EnvSpec, env_config: Mapping[str, Any], limit: int | None
) -> dict[str, Any] | None:
    """How the vector form is told the longest episode; None: it cannot be told."""
    if limit is None:
        return {}
    parameters = parameters_of(entry_point(spec, vector=True))
    if "max_episode_steps" in parameters:
        return {"max_episode_steps": limit}
    if "max_num_frames_per_episode" in parameters:  # Atari counts frames, `frameskip` each step
        skip = {"frameskip": parameters["frameskip"].default} | spec.kwargs | dict(env_config)
        return {"max_num_frames_per_episode": limit * skip["frameskip"]}
    return None


def _seeded(
    env: Env, env_config: Mapping[str, Any], limit: int | None, observation_key: str | None
) -> gym.Env:
    # By name, not by specification: another process has to find it for itself.
    return SeededResets(shaped(build_one(find(env), env_config, limit), observation_key))
