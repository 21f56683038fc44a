"""Moments as a person would have seen them: the environment's own picture of them.

Episodes are played again from their seed and actions. Where that does not lead to the same
observation (no seed, chance that the seed does not govern, another version), there is no picture.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

from rllib_conspec.environments import make_single
from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.base import Moment

PATIENCE = 30.0  # seconds: somebody waits at the end of a run

Renders = dict[tuple[Episode, int], np.ndarray]  # (episode, step) → uint8 [H, W, 3]


def renders(config: Any, moments: Iterable[Moment]) -> tuple[Renders, str]:
    """The pictures of those moments that could be played again; and why others could not, where the
    environment should have pictures.
    """
    wanted: dict[Episode, set[int]] = {}
    for moment in moments:
        if moment.episode.seed is not None:
            wanted.setdefault(moment.episode, set()).add(moment.step)
    facts = getattr(config, "facts", None)
    if facts is None or not wanted:
        return {}, ""
    found: Renders = {}
    try:
        with contextlib.closing(
            make_single(
                config.env,
                config.env_config,
                facts,
                observation_key=config.observation_key,
                render_mode="rgb_array",
            )
        ) as env:
            return found, _play(env, config, wanted, found)
    except NotImplementedError:
        return found, ""  # Gymnasium's way to say that there is no `render`
    except Exception as error:  # a user's environment may raise anything
        return found, " ".join(f"{type(error).__name__}: {error}".split())


def _play(env: gym.Env, config: Any, wanted: Mapping[Episode, set[int]], found: Renders) -> str:
    """Play each episode up to its last wanted step, and fill `found`; returns what went wrong."""
    deadline = time.monotonic() + PATIENCE
    for episode, steps in wanted.items():
        env.reset(seed=episode.seed)
        for t in range(max(steps) + 1):
            observation, *_ = env.step(_to_env(episode.actions[t], env.action_space, config))
            if time.monotonic() > deadline:
                return f"playing the episodes again takes more than {PATIENCE:.0f} s"
            if t not in steps:
                continue
            picture = env.render()
            if not isinstance(picture, np.ndarray) or picture.ndim != 3:
                return ""
            if not _equal(observation, episode.frames[t]):
                return "played again with the same seed, an episode comes out differently"
            found[episode, t] = picture
    return ""


def _equal(played: Any, stored: np.ndarray) -> bool:
    """Up to rounding: vector environments store observations in the precision of their space."""
    played = np.asarray(played)
    return played.shape == stored.shape and np.allclose(played, stored, 1e-5, 1e-6, equal_nan=True)


def _to_env(action: np.ndarray, space: spaces.Space, config: Any) -> Any:
    """The action in the environment's range: episodes keep what the policy chose."""
    if not isinstance(space, spaces.Box):
        return action
    if config.normalize_actions:
        return unsquash_action(action, space)
    return clip_action(action, space) if config.clip_actions else action
