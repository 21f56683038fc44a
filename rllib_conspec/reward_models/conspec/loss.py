"""The contrastive loss (eqn 1), its diversity terms, and the criterion for freezing.

Shapes: s [H, K, T] scores of H prototypes in K episodes padded to T steps; mask [K, T] true on real
steps. Padding never enters a maximum, a softmax or a mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

SOFTMAX_SCALE = 100.0  # factor on the scores before the softmax over time in D (the authors' code)


def best_match(s: Tensor, mask: Tensor, top_k: int = 1) -> Tensor:
    """max_t s_ikt, or the mean of the k largest: [H, K, T] → [H, K].

    An episode shorter than k is averaged over the steps that it has.
    """
    s = s.masked_fill(~mask, -torch.inf)
    if top_k == 1:
        return s.amax(dim=-1)
    best = s.topk(min(top_k, s.shape[-1]), dim=-1).values
    real = torch.isfinite(best)
    return best.masked_fill(~real, 0.0).sum(dim=-1) / real.sum(dim=-1)


def claimed(s: Tensor, mask: Tensor, threshold: float, window: int) -> Tensor:
    """Steps within `window` of a prototype's best match, where that is above the threshold:
    [H, K, T] → bool [K, T]. Never all steps of an episode.
    """
    s = s.masked_fill(~mask, -torch.inf)
    best = s.amax(dim=-1, keepdim=True)
    at = ((s == best) & (best > threshold)).any(dim=0).to(s.dtype)
    near = torch.nn.functional.max_pool1d(at[None], 2 * window + 1, 1, window)[0].bool() & mask
    return near & ~(near == mask).all(dim=-1, keepdim=True)


def success_loss(best: Tensor, share: Tensor | None = None) -> Tensor:
    """Σ_i mean_k |1 − max_t s_ikt|, first term of eqn 1. [H, K] → scalar; or rows [R] of prototypes
    that have different episodes, with the share [R] of each in the mean of its prototype.
    """
    return _sum_of_means((1 - best).abs(), share)


def failure_loss(best: Tensor, share: Tensor | None = None) -> Tensor:
    """Σ_i mean_k |max_t s_ikt|, second term of eqn 1. Shapes as of `success_loss`."""
    return _sum_of_means(best.abs(), share)


def _sum_of_means(off: Tensor, share: Tensor | None) -> Tensor:
    return off.mean(dim=-1).sum() if share is None else off @ share


def match_times(s: Tensor, mask: Tensor, scale: float) -> Tensor:
    """p_ik = softmax_t(scale · s_ikt), 0 on padding. [H, K, T]"""
    return (scale * s).masked_fill(~mask, -torch.inf).softmax(dim=-1)


def spread(p: Tensor, mask: Tensor, window: int) -> Tensor:
    """Match times summed over `window` steps on either side: [H, K, T] → [H, K, T].

    Prototypes that match neighbouring steps then overlap too.
    """
    if window == 0:
        return p
    padded = torch.nn.functional.pad(p, (window, window))
    # For windows of some steps, half of the time that pooling takes.
    return sum(padded.narrow(-1, k, p.shape[-1]) for k in range(2 * window + 1)) * mask


def overlap(p: Tensor) -> Tensor:
    """cos(p_ik, p_jk) of every pair of prototypes in every episode: [H, K, T] → [K, H, H]."""
    unit = torch.nn.functional.normalize(p, dim=-1).transpose(0, 1)
    return unit @ unit.transpose(1, 2)


def cosine_diversity(p: Tensor) -> Tensor:
    """D = Σ_{i≠j} |cos(p_ik, p_jk)| for every episode: [H, K, T] → [K]."""
    return _off_diagonal(overlap(p)).abs().sum(dim=(1, 2))


def _off_diagonal(matrix: Tensor) -> Tensor:
    """The same matrices [K, H, H] with zeros on their diagonals."""
    diagonal = torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)
    return matrix.masked_fill(diagonal, 0.0)


def entropy_diversity(p: Tensor) -> Tensor:
    """D = −Entropy(L1-normalised Σ_i p_ik) for every episode: [H, K, T] → [K]."""
    total = p.sum(dim=0)
    total = total / total.sum(dim=-1, keepdim=True)
    # 0 · log 0 is 0, and so is its gradient, which torch would call nan.
    logarithm = total.clamp_min(torch.finfo(total.dtype).tiny).log()
    return (total * logarithm).sum(dim=-1)


DIVERSITY = {"cosine": cosine_diversity, "entropy": entropy_diversity}


def carries_gradient(
    s: Tensor, mask: Tensor, *, top_k: int, softmax_scale: float | None = None
) -> Tensor:
    """Which scores the loss's gradient can flow through: [H, K, T] → bool [H, K, T].

    Exactly the k best steps of an episode carry the first two terms (every step tied with the k-th
    is kept). With `softmax_scale`, the diversity term counts too: steps whose softmax weight is
    below e^−NEGLIGIBLE of the largest are left out. What that takes from the gradient of D with
    respect to a score is at most 2 (H − 1) · softmax_scale · e^−NEGLIGIBLE, 1e−10 at the paper's
    sizes (and 2w + 1 times that where match times are spread over w steps on either side).
    """
    s = s.masked_fill(~mask, -torch.inf)
    kth = s.topk(min(top_k, s.shape[-1]), dim=-1).values[..., -1:]
    if softmax_scale is not None:
        kth = torch.minimum(kth, s.amax(dim=-1, keepdim=True) - NEGLIGIBLE / softmax_scale)
    return (s >= kth - ROUNDING) & mask


def among_best(s: Tensor, mask: Tensor, count: int) -> Tensor:
    """Which scores are among an episode's `count` highest: [H, K, T] → bool [H, K, T]."""
    s = s.masked_fill(~mask, -torch.inf)
    best = s.topk(min(count, s.shape[-1]), dim=-1).indices
    return torch.zeros_like(s, dtype=torch.bool).scatter_(-1, best, True) & mask


NEGLIGIBLE = 30.0  # e^-30 < 1e-13
# Two passes over the same frame may round differently: what is best in one must have a graph even
# where it is only almost the best in the other.
ROUNDING = 1e-5


def separation(success_best: Tensor, failure_best: Tensor) -> Tensor:
    """mean_S max − mean_F max for every prototype: [H, K_S], [H, K_F] → [H]."""
    return success_best.mean(dim=-1) - failure_best.mean(dim=-1)


def meets_criterion(success_best: Tensor, failure_best: Tensor, threshold: float) -> Tensor:
    """Whether each prototype tells success from failure: [H, K_S], [H, K_F] → bool [H]."""
    return (separation(success_best, failure_best) > threshold) & (
        success_best.mean(dim=-1) > threshold
    )
