"""Pictures are known again: contrastive learning beside RL, CURL (Laskin et al., 2020).

Two views of a picture, each moved a little, are to be found among those of all other pictures. One
is encoded by the policy's encoder (the query q), the other by an average of it over the last steps
(the key k), and they are compared by a bilinear product:

    loss = mean over i of −log( exp(q_iᵀ W k_i) / Σ_j exp(q_iᵀ W k_j) )
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss, PolicyBatch
from rllib_conspec.networks.augmenting import pad_for, shift
from rllib_conspec.networks.pieces import encode
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class CURLOptions(Options):
    coeff: float = option(1.0, "weight of a loss that has pictures known again", above=0.0)
    batch: int = option(128, "pictures of a minibatch that are told from each other", min=2)
    latent_dim: int = option(128, "numbers that a picture is known by", min=1)
    tau: float = option(
        0.05,
        "share that the policy's encoder gets in that of the keys with every gradient step",
        above=0.0,
        max=1.0,
    )
    pad: int | None = option(
        None,
        "pixels by which a view is moved at most; null is a fourteenth of a side: a crop of 84×84 "
        "out of 96×96",
        min=1,
    )


class CURL(AuxiliaryLoss):
    """How badly a picture's second view is found among those of other pictures."""

    Options = CURLOptions

    def __init__(self, options: CURLOptions, encoder: nn.Module) -> None:
        super().__init__(options, encoder)
        self._encoder = (encoder,)  # in a tuple: it learns as a part of the policy
        self._accuracy: Tensor | None = None
        features = [m for m in encoder.modules() if isinstance(m, nn.Linear)][-1].out_features
        self.latent = nn.Linear(features, options.latent_dim)
        self.bilinear = nn.Parameter(torch.rand(options.latent_dim, options.latent_dim))
        self.keys = copy.deepcopy(nn.Sequential(encoder, self.latent)).requires_grad_(False)
        # The encoder's first layer knows how the raw pictures are to be read.
        first = next(m for m in encoder.modules() if hasattr(m, "observation_range"))
        self.channels = first.channels

    @classmethod
    def check(cls, options: CURLOptions, shape: tuple[int, ...]) -> None:
        pad_for(shape, options.pad)

    def loss(self, batch: PolicyBatch) -> Tensor:
        frames = draw_frames(batch, self.options.batch)
        pad = pad_for(tuple(frames.shape[1:]), self.options.pad)
        queries = self.latent(encode(self._encoder[0], shift(frames, pad, self.channels)))
        with torch.no_grad():
            keys = encode(self.keys, shift(frames, pad, self.channels))
        found = logits(queries, keys, self.bilinear)
        own = torch.arange(len(found), device=found.device)
        self._accuracy = (found.detach().argmax(-1) == own).float().mean()
        return self.options.coeff * nn.functional.cross_entropy(found, own)

    def metrics(self) -> dict[str, Tensor]:
        """`accuracy`: share of the pictures whose second view was found."""
        return {} if self._accuracy is None else {"accuracy": self._accuracy}

    @torch.no_grad()
    def after_step(self) -> None:
        now = (*self._encoder[0].parameters(), *self.latent.parameters())
        for key, query in zip(self.keys.parameters(), now, strict=True):
            key.lerp_(query, self.options.tau)


def logits(queries: Tensor, keys: Tensor, bilinear: Tensor) -> Tensor:
    """q_iᵀ W k_j [n, n] of queries and keys [n, d] and W [d, d]; the largest of a row is taken off,
    which changes no probability and keeps their sums finite.
    """
    found = queries @ bilinear @ keys.T
    return found - found.detach().amax(-1, keepdim=True)


def draw_frames(batch: PolicyBatch, count: int) -> Tensor:
    """Up to `count` of the pictures of real steps [n, *shape]; none is drawn twice."""
    steps = batch.values.dim()
    frames = batch.observations.flatten(0, steps - 1)
    real = torch.arange(len(frames), device=frames.device)
    if batch.mask is not None:
        real = batch.mask.flatten().nonzero().squeeze(1)
    chosen = real[torch.randperm(len(real), device=frames.device)[:count]]
    return frames[chosen]
