"""Rows of places: where the scores of a prototype in an episode stand among all scores.

Places count from 1 through s [H, N], flattened; 0 is nowhere, and scores −∞ there. So padding and
steps that do not count need no mask, and all prototypes, each with episodes of its own, go through
the same few operations: what small products leave to be saved is the number of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rllib_conspec.networks.devices import to_device
from rllib_conspec.reward_models.conspec import loss as L


def scores_at(s: Tensor, at: Tensor) -> Tensor:
    """Scores s [H, N] at these places, in the places' shape."""
    # One index into a flat tensor: of all ways to gather, the one with the fastest backward pass.
    return _flat(s).index_select(0, at.flatten()).view(at.shape)


def _flat(s: Tensor) -> Tensor:
    return torch.cat([s.new_full((1,), -torch.inf), s.flatten()])


def joined(rows: Sequence[Tensor]) -> Tensor:
    """Rows [·, T] of different lengths, one below the other."""
    longest = max(r.shape[1] for r in rows)
    if any(r.shape[1] < longest for r in rows):
        rows = [torch.nn.functional.pad(r, (0, longest - r.shape[1])) for r in rows]
    return torch.cat(list(rows))


@dataclass(frozen=True)
class Matches:
    """Rows in which prototypes look for their best matches: all of successes, then all others."""

    at: Tensor  # [R, T]
    prototypes: tuple[int, ...]
    sizes: tuple[list[int], list[int]]  # rows of each prototype, of successes and of others
    shares: tuple[Tensor, Tensor]  # [R_S], [R_F]: one over the rows of its prototype

    @classmethod
    def of(
        cls,
        prototypes: Sequence[int],
        won: Sequence[Tensor],
        lost: Sequence[Tensor],
        dtype: torch.dtype,
    ) -> Matches:
        """Rows [K, T] of every prototype."""
        sizes = tuple([len(rows) for rows in kind] for kind in (won, lost))
        shares = (np.concatenate([np.full(n, 1 / n) for n in kind]) for kind in sizes)
        device = won[0].device
        shares = tuple(to_device(share, device).to(dtype) for share in shares)
        return cls(joined([*won, *lost]), tuple(prototypes), sizes, shares)

    def best(self, s: Tensor, top_k: int) -> tuple[Tensor, ...]:
        """Best matches as of `loss.best_match`, [R_S] and [R_F].

        They are looked for without a graph, which then holds only those that were found.
        """
        with torch.no_grad():
            found = scores_at(s, self.at)
            if top_k == 1:
                steps = found.argmax(dim=-1, keepdim=True)
            else:
                steps = found.topk(min(top_k, found.shape[-1]), dim=-1).indices
            at = self.at.gather(1, steps)
        best = scores_at(s, at)
        best = best.squeeze(-1) if top_k == 1 else L.best_match(best, at > 0, top_k)
        return best.split([sum(kind) for kind in self.sizes])

    def by_prototype(self, best: Sequence[Tensor]) -> tuple[dict[int, Tensor], ...]:
        """prototype → its own of the best matches, of successes and of others."""
        return tuple(
            dict(zip(self.prototypes, b.split(sizes), strict=True))
            for b, sizes in zip(best, self.sizes, strict=True)
        )
