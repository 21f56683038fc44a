"""A memory of rows that are found by their content.

Rows are what was stored at earlier steps. A head asks with a key k and a strength β ≥ 0; of the
rows m_j that there are, the n most alike are read, by a softmax of their cosine similarity:

    w = softmax(β · cos(k, m_j)) over the n most alike rows,   0 for the others
    read = Σ_j w_j · m_j
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

NOWHERE = -1e9  # similarity of a row that is not there


class Read(NamedTuple):
    """What H heads found in S rows, of which n are read."""

    found: Tensor  # [B, H, W]
    weights: Tensor  # [B, H, n]
    places: Tensor  # int64 [B, H, n], of the rows that were read


def read(
    rows: Tensor, unit: Tensor, there: Tensor, keys: Tensor, strengths: Tensor, most: int
) -> Read:
    """Rows [B, S, W], the same as unit vectors, which of them are there (1 or 0, [B, S]), keys
    [B, H, W], strengths [B, H]; `most` rows are read. Nothing is found where no row is there.
    """
    likeness = torch.bmm(F.normalize(keys, dim=-1), unit.mT)
    likeness = likeness + (1 - there).unsqueeze(1) * NOWHERE
    size = rows.shape[1]
    if size <= most:
        places = torch.arange(size, device=rows.device).expand(likeness.shape)
        weights = _weights(likeness, strengths)
        weights = weights * there.unsqueeze(1)
        return Read(torch.bmm(weights, rows), weights, places)
    likeness, places = likeness.topk(most, dim=-1, sorted=False)
    weights = _weights(likeness, strengths) * there.unsqueeze(1).expand(
        -1, places.shape[1], -1
    ).gather(-1, places)
    # One product with all rows instead of copies of those that are read.
    everywhere = torch.zeros(*places.shape[:2], size, dtype=rows.dtype, device=rows.device)
    everywhere = everywhere.scatter(-1, places, weights)
    return Read(torch.bmm(everywhere, rows), weights, places)


def _weights(likeness: Tensor, strengths: Tensor) -> Tensor:
    return (strengths.unsqueeze(-1) * likeness).softmax(dim=-1)


def numbers_in(count: Tensor, slots: int) -> Tensor:
    """Of which step the row in each slot is [B, slots], after `count` [B] steps, each of which was
    written over the oldest: step s stands in slot s mod `slots`. Below 0: nothing stands there.
    """
    newest = count.unsqueeze(1) - 1
    slot = torch.arange(slots, device=count.device)
    return newest - torch.remainder(newest - slot, slots)
