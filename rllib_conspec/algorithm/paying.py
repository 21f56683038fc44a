"""Episodes of RLlib's as the policy learns from them: rewards scaled, intrinsic ones added."""

from __future__ import annotations

import copy

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from rllib_conspec.episodes import scaled

OWN_REWARDS = "own_rewards"  # what a model with a value stream of its own pays
# What an episode is to be paid again by: the environment's own rewards, which travel as an output
# of the policy's, and the version of the snapshot that paid.
ENVIRONMENT = "environment_rewards"
PAID_BY = "paid_by"


def with_reward(
    episode: SingleAgentEpisode,
    scale: float | str,
    intrinsic: np.ndarray | None = None,
    version: int | None = None,
    own: np.ndarray | None = None,
) -> SingleAgentEpisode:
    """The episode with rewards scaled, and intrinsic ones [T] added: a shallow copy, metrics are of
    the original. With the version of the snapshot that paid, it can be paid again later. Rewards
    with a value stream of their `own` [T] stay apart, as an output of the policy's.
    """
    if intrinsic is None and own is None and scale == 1.0:
        return episode
    paid = copy.copy(episode)
    paid.rewards = _scaled(episode, episode.rewards, scale, intrinsic)
    if version is not None:
        paid.extra_model_outputs = copy.copy(episode.extra_model_outputs)
        paid.extra_model_outputs[ENVIRONMENT] = episode.rewards
        paid._custom_data = episode.custom_data | {PAID_BY: version}
    if own is not None:
        outputs = InfiniteLookbackBuffer(own.copy())
        paid.extra_model_outputs = {**paid.extra_model_outputs, OWN_REWARDS: outputs}
    return paid


def as_played(episode: SingleAgentEpisode) -> SingleAgentEpisode:
    """The episode with the environment's own rewards, which `with_reward` kept."""
    own = copy.copy(episode)
    own.rewards = episode.extra_model_outputs[ENVIRONMENT]
    return own


def pay_again(
    episode: SingleAgentEpisode, scale: float | str, intrinsic: np.ndarray, version: int
) -> None:
    """Put other intrinsic rewards [T] in place of those that the episode was paid."""
    own = episode.extra_model_outputs[ENVIRONMENT]
    episode.rewards = _scaled(episode, own, scale, intrinsic)
    episode.custom_data[PAID_BY] = version


def _scaled(
    episode: SingleAgentEpisode,
    own: InfiniteLookbackBuffer,
    scale: float | str,
    intrinsic: np.ndarray | None,
) -> InfiniteLookbackBuffer:
    rewards = scaled(own.data, scale)
    if intrinsic is not None:
        rewards[own.lookback :] += intrinsic
    return InfiniteLookbackBuffer(
        rewards if episode.is_numpy else list(rewards), lookback=own.lookback
    )
