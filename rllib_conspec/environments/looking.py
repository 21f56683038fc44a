"""Look at an environment before anything starts: build it once, play a little, close it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from rllib_conspec.environments.arguments import check_arguments, entry_point, parameters_of
from rllib_conspec.environments.facts import Facts
from rllib_conspec.environments.finding import Env, find, name_of
from rllib_conspec.environments.making import (
    build_many,
    build_one,
    check_mode,
    limit_arguments,
    timed,
)
from rllib_conspec.environments.observations import channels_of, is_unbounded, shaped
from rllib_conspec.environments.ranges import observation_range, played
from rllib_conspec.environments.wrappers import attribute
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.single_env import SingleEnv


def look(
    env: Env,
    env_config: Mapping[str, Any],
    *,
    max_episode_steps: int | None = None,
    observation_key: str | None = None,
    mode: str = "auto",
    limit_needed: bool = True,
) -> Facts:
    """What `make_vector` with the same arguments will make.

    OptionErrors name `env`, `env_config.<key>`, `max_episode_steps` or `observation_key`.

    Args:
        env: see the package.
        env_config: its options.
        max_episode_steps: the longest episode; by default the environment's own limit.
        observation_key: which entry of Dict observations to use.
        mode: see `making.MODES`.
        limit_needed: refuse an environment of which nobody says how long its episodes are.
    """
    check_mode(mode)
    spec = find(env)
    limit = max_episode_steps or _registered_limit(spec, env_config)
    mistake = _mistake(spec, env_config, vector=False)
    many = mode == "auto" and _has_vector_form(spec, env_config)
    if mistake is not None and not many:
        raise mistake
    view = _View(name_of(env), spec, env_config, limit, observation_key, limit_needed)
    # The single form of our own tasks is a vector of one: it shows the same, and a Unity player
    # with many agents starts once and not twice.
    if many and not _is_vector_of_one(spec):
        facts = view.of_vector_form()
        if facts is not None:
            return facts
        if mistake is not None:
            raise mistake
        many = False
    return view.of_single_form(vectorised=many)


class _View:
    """One look at one environment."""

    def __init__(
        self,
        name: str,
        spec: EnvSpec,
        env_config: Mapping[str, Any],
        limit: int | None,
        observation_key: str | None,
        limit_needed: bool,
    ) -> None:
        self.name = name
        self.spec = spec
        self.env_config = env_config
        self.limit = limit  # as asked for or registered
        self.observation_key = observation_key
        self.limit_needed = limit_needed

    def of_vector_form(self) -> Facts | None:
        """None: it does not do what is asked of it."""
        env = self._build(lambda: build_many(self.spec, self.env_config, 1, self.limit))
        try:
            next_step = env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP
            if not next_step or not self._is_honoured(env):
                return None
            return self._facts(env, vectorised=True)
        finally:
            env.close()

    def of_single_form(self, vectorised: bool) -> Facts:
        spec = timed(self.spec, self.limit)
        env = self._build(lambda: build_one(spec, self.env_config, check=True))
        try:
            return self._facts(env, vectorised=vectorised and self._is_honoured(env))
        finally:
            env.close()

    def _build(self, build: Callable[[], Any]) -> Any:
        try:
            return build()
        except OptionError as error:
            raise error.within("env_config") from error
        except UserError:
            raise
        except Exception as error:  # whatever the environment raises
            text = " ".join(str(error).split()) or type(error).__name__
            raise OptionError("env_config", f"{self.name} cannot be built: {text}") from error

    def _is_honoured(self, env: gym.Env | VectorEnv) -> bool:
        """Whether no episode of the vector form will be longer than the limit."""
        told = limit_arguments(self.spec, self.env_config, self.limit)
        rule = _whole(_attribute(env, "max_episode_steps"))
        return told is not None or (rule is not None and rule <= self.limit)

    def _facts(self, env: gym.Env | VectorEnv, vectorised: bool) -> Facts:
        limits = [self.limit, _whole(_attribute(env, "max_episode_steps"))]
        limit = min((steps for steps in limits if steps is not None), default=None)
        # MiniGrid and others end their episodes by themselves, and say so by this name.
        limit = limit or _whole(_attribute(env, "max_steps"))
        if limit is None and self.limit_needed:
            raise OptionError(
                "max_episode_steps", "is not known for this environment; set it in the config."
            )
        names = _attribute(env, "observation_names")
        plays, version = self._played(env)
        env = shaped(env, self.observation_key)
        many = isinstance(env, VectorEnv)
        space = env.single_observation_space if many else env.observation_space
        return Facts(
            observation_space=space,
            action_space=env.single_action_space if many else env.action_space,
            max_episode_steps=limit,
            vectorised=vectorised,
            observation_range=observation_range(space, self._checked(played(env), space)),
            channels=channels_of(space.shape),
            normalize=is_unbounded(space),
            plays=plays,
            version=version,
            observation_names=_names(names, space),
        )

    def _played(self, env: gym.Env | VectorEnv) -> tuple[str, str]:
        """What is played and by which program: as the environment says, or by its name, its
        options and the package that it comes from.
        """
        plays, version = _attribute(env, "plays"), _attribute(env, "version")
        if isinstance(plays, str) and isinstance(version, str):
            return plays, version
        options = {k: v for k, v in self.env_config.items() if k != "max_episode_steps"}
        said = "".join(f" {key}={options[key]}" for key in sorted(options))
        package = getattr(entry_point(self.spec), "__module__", "").split(".")[0]
        try:
            version = f"{package} {metadata.version(package)}"
        except (metadata.PackageNotFoundError, ValueError):  # a file of the user's own
            version = ""
        return self.name + said, version

    def _checked(self, seen: Iterable[np.ndarray], space: spaces.Box) -> Iterator[np.ndarray]:
        """`seen`, with one line for what goes wrong on the way."""
        try:
            for observation in seen:
                shape = np.shape(observation)
                if shape != space.shape:
                    raise OptionError(
                        "env",
                        f"{self.name} gives observations of shape {shape}; its observation_space "
                        f"says {space.shape}.",
                    )
                yield np.asarray(observation)
        except UserError:
            raise
        except Exception as error:  # whatever the environment raises
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())
            raise OptionError(
                "env",
                f"{self.name} cannot be played: {type(error).__name__}: {text} "
                f"({Path(where.filename).name}, line {where.lineno})",
            ) from error


def _mistake(spec: EnvSpec, env_config: Mapping[str, Any], *, vector: bool) -> OptionError | None:
    try:
        check_arguments(spec, env_config, vector=vector)
    except OptionError as error:
        return error.within("env_config")
    return None


def _registered_limit(spec: EnvSpec, env_config: Mapping[str, Any]) -> int | None:
    return _whole(env_config.get("max_episode_steps")) or spec.max_episode_steps


def _has_vector_form(spec: EnvSpec, env_config: Mapping[str, Any]) -> bool:
    """Whether there is a vector form that Gymnasium can make with these options."""
    if spec.vector_entry_point is None or spec.additional_wrappers:
        return False
    # A registered limit is passed on by Gymnasium in any case.
    takes_limit = "max_episode_steps" in parameters_of(entry_point(spec, vector=True))
    if spec.max_episode_steps is not None and not takes_limit:
        return False
    return _mistake(spec, env_config, vector=True) is None


def _is_vector_of_one(spec: EnvSpec) -> bool:
    entry = entry_point(spec)
    return isinstance(entry, type) and issubclass(entry, SingleEnv)


def _attribute(env: gym.Env | VectorEnv, name: str) -> Any:
    if isinstance(env, VectorEnv):
        return getattr(env.unwrapped, name, None)
    return attribute(env, name)


def _whole(value: Any) -> int | None:
    """`value` if it is a number of steps."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if whole and value > 0 else None


def _names(names: Any, space: spaces.Box) -> tuple[str, ...]:
    """The environment's `observation_names`, if that is what they are."""
    fits = (
        isinstance(names, list | tuple)
        and space.shape == (len(names),)
        and all(isinstance(name, str) for name in names)
    )
    return tuple(names) if fits else ()
