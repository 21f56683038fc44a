"""Long episodes of pictures go through an encoder a piece at a time, on every device.

What an encoder's layers hold of a picture is many times its size: of 600 Atari frames, 1.8 GB with
`impala` where a graph is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rllib_conspec.networks.side_by_side import side_by_side

# Numbers in a piece where no graph is needed. On a CPU larger ones would go through fresh memory in
# every layer: twice as slow. On a GPU it is about a GB of layers, for Atari and `impala`.
SMALL = {"cpu": 2_000_000}
LARGE = 20_000_000
# Observations in it, however small they are: their layers are not.
MOST = {"cpu": 256}
# With a graph, more than this is encoded in pieces, each once more in the backward pass.
WITH_GRAPH = 40_000_000


def piece_size(shape: Iterable[int], device: torch.device) -> int:
    """Observations of this shape that are encoded at a time without a graph."""
    by_size = SMALL.get(device.type, LARGE) // math.prod(shape)
    return max(1, min(by_size, MOST.get(device.type, by_size)))


def encode(encoder: nn.Module, observations: Tensor) -> Tensor:
    """[N, *shape] → features [N, dim], as `encoder` alone would give them."""
    shape = observations.shape[1:]
    if not torch.is_grad_enabled():
        pieces = observations.split(piece_size(shape, observations.device))
        return encoder(pieces[0]) if len(pieces) == 1 else torch.cat(side_by_side(encoder, pieces))
    if observations.numel() <= WITH_GRAPH:
        return encoder(observations)
    pieces = observations.split(max(1, WITH_GRAPH // math.prod(shape)))
    return torch.cat([checkpoint(encoder, piece, use_reentrant=False) for piece in pieces])
