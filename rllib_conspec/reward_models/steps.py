"""Steps of episodes as networks read them: the observation that a step led to, and its action.

Equal frames are encoded once. Episodes of unequal length are padded at their ends, and masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rllib_conspec.networks.encoders import ENCODER_NAMES, build_encoder
from rllib_conspec.networks.pieces import encode
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.distinct import AnyEpisode, DistinctFrames


@dataclass(frozen=True)
class StepOptions(Options):
    """What steps are encoded with."""

    encoder: str = option("auto", "of observations: as for the policy", choices=ENCODER_NAMES)
    encoder_dim: int = option(512, "width of the encoder's output", min=1)


@dataclass(frozen=True, eq=False)
class Steps:
    """T steps of each of K episodes; those of shorter ones are padded."""

    frames: np.ndarray  # [N, *shape], the different ones
    index: np.ndarray  # [K, T], positions among the frames; 0 on padding
    mask: np.ndarray  # bool [K, T], real steps
    actions: np.ndarray  # float32 [K, T, A]; 0 on padding

    @classmethod
    def of(
        cls,
        episodes: Sequence[AnyEpisode],
        space: spaces.Space,
        drawn: Sequence[np.ndarray] | None = None,
    ) -> Steps:
        """All steps, or of every episode those in `drawn`: no other frame is read then."""
        if drawn is None:
            drawn = [np.arange(len(e)) for e in episodes]
        distinct = DistinctFrames.of(episodes)
        shape = len(episodes), max(len(steps) for steps in drawn)
        index, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        actions = np.zeros((*shape, action_width(space)), dtype=np.float32)
        for k, (episode, steps) in enumerate(zip(episodes, drawn, strict=True)):
            index[k, : len(steps)] = distinct.index[id(episode)][steps]
            mask[k, : len(steps)] = True
            actions[k, : len(steps)] = action_inputs(episode.actions[steps], space)
        wanted, place = np.unique(index[mask], return_inverse=True)
        index[mask] = place
        return cls(distinct.take(wanted), index, mask, actions)

    @property
    def lengths(self) -> np.ndarray:
        """[K]"""
        return self.mask.sum(axis=1)


def action_width(space: spaces.Space) -> int:
    """Numbers that an action is told by."""
    return int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape))


def action_inputs(actions: np.ndarray, space: spaces.Space) -> np.ndarray:
    """Actions [T, …] as numbers [T, A]: one of n as n numbers, others as they are."""
    if isinstance(space, spaces.Discrete):
        return np.eye(int(space.n), dtype=np.float32)[actions]
    return np.asarray(actions, dtype=np.float32).reshape(len(actions), -1)


def padded(values: Sequence[np.ndarray], like: Steps, where: Tensor) -> Tensor:
    """Values [T] of every episode as a tensor [K, T] of `where`'s kind, 0 on padding."""
    whole = np.zeros(like.mask.shape)
    whole[like.mask] = np.concatenate(values)
    return torch.from_numpy(whole).to(where)


class StepEncoder(nn.Module):
    """Features of steps: those of the observation, and with it the action."""

    def __init__(self, options: StepOptions, setting: Setting) -> None:
        super().__init__()
        self.encoder = build_encoder(
            options.encoder,
            setting.shape,
            options.encoder_dim,
            observation_range=setting.observation_range,
            channels=setting.channels,
            normalize=setting.normalize,
        )
        self.dim = options.encoder_dim
        self.width = self.dim + action_width(setting.action_space)

    def observations(self, steps: Steps) -> Tensor:
        """[K, T, dim]"""
        device = next(self.parameters()).device
        z = encode(self.encoder, torch.from_numpy(steps.frames).to(device))
        return z[torch.from_numpy(steps.index).to(device)]

    def forward(self, steps: Steps) -> Tensor:
        """[K, T, width]"""
        z = self.observations(steps)
        return torch.cat([z, torch.from_numpy(steps.actions).to(z)], dim=-1)


def mask_of(steps: Steps, like: Tensor) -> Tensor:
    """The mask [K, T] as a tensor beside `like`."""
    return torch.from_numpy(steps.mask).to(like.device)
