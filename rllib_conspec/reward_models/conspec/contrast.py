"""One evaluation of the ConSpec loss (eqn 1) with as little computation as the gradient needs.

Two passes. The first scores every *different* frame once, without a graph. It shows which frames
hold an episode's best match or a visible softmax weight; only these go through the second pass,
with a graph. The loss is computed from all scores, so its value is exact; what the gradient leaves
out is bounded in `loss.carries_gradient`.

Where several gradient steps follow on the same episodes, all frames are looked at once, and the
steps use those that are among the best few of an episode for any prototype: a step moves the scores
by little, so that the best frame of the next one is almost surely among them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rllib_conspec.networks.devices import to_device
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.distinct import AnyEpisode, DistinctFrames

Episodes = Sequence[AnyEpisode]
# Numbers in the frames of a step up to which they are kept ready for the second pass.
KEPT = 50_000_000


@dataclass(frozen=True)
class Contrast:
    """Some prototypes, and the successes and failures that they are to tell apart."""

    prototypes: tuple[int, ...]
    successes: Episodes
    failures: Episodes


@dataclass(frozen=True)
class ContrastiveLoss:
    """The loss, its parts, and every prototype's best match in its own episodes."""

    success: Tensor
    failure: Tensor
    diversity: Tensor
    success_best: dict[int, Tensor]  # prototype → [K_S]
    failure_best: dict[int, Tensor]  # prototype → [K_F]

    @property
    def total(self) -> Tensor:
        return self.success + self.failure + self.diversity

    @cached_property
    def measured(self) -> tuple[list[float], dict[int, tuple[float, float]]]:
        """(total, success, failure, diversity), and every prototype's mean best match in successes
        and failures. All of it is fetched from the device at once.
        """
        means = [b.mean() for own in (self.success_best, self.failure_best) for b in own.values()]
        parts = [self.total, self.success, self.failure, self.diversity]
        found = torch.stack([p.detach() for p in (*parts, *means)]).cpu().numpy()
        won, lost = np.split(found[len(parts) :], 2)
        best = zip(self.success_best, zip(won, lost, strict=True), strict=True)
        return found[: len(parts)].tolist(), dict(best)


def contrastive_loss(
    view: View, options: ConSpecOptions, active: int, live: Contrast, frozen: Sequence[Contrast]
) -> ContrastiveLoss:
    """Eqn 1 over `active` prototypes: the live ones on the memories, frozen ones on their
    exemplars.

    The diversity term is taken once, on the live successes; in the form of the authors' code, once
    for every prototype on its own successes.
    """
    contrasts = [c for c in (live, *frozen) if c.prototypes]
    scored = [(c.prototypes, e) for c in contrasts for e in (c.successes, c.failures)]
    # Where frozen prototypes claim their steps, the live ones have only each other to avoid.
    everyone = live.prototypes if id(live.successes) in view.claims else tuple(range(active))
    diverse = _diversity_sets(options, active, live, contrasts) if everyone else []
    s = view.scores(
        best_of=scored, softmax_of=[(everyone, e) for e, _ in diverse], top_k=options.top_k
    )

    success = failure = diversity = s.new_zeros(())
    success_best, failure_best = {}, {}
    laid_out = {}  # (prototypes, id of successes) → their scores by step, for D
    for c in contrasts:
        by_step = laid_out[c.prototypes, id(c.successes)] = view.by_step(
            s, c.prototypes, c.successes
        )
        won = L.best_match(*by_step, options.top_k)
        lost = L.best_match(*view.by_step(s, c.prototypes, c.failures), options.top_k)
        if id(c.successes) in view.claims:
            lost = torch.cat([lost, view.best_claimed(s, c)], dim=1)
        success = success + L.success_loss(won)
        failure = failure + options.failure_coeff * L.failure_loss(lost)
        success_best |= dict(zip(c.prototypes, won.detach(), strict=True))
        failure_best |= dict(zip(c.prototypes, lost.detach(), strict=True))
    held = [n for n, i in enumerate(everyone) if i not in live.prototypes]
    held = held if options.diversity_moves == "live" else ()
    for episodes, weight in diverse:
        by_step = laid_out.get((everyone, id(episodes)))
        steps, mask = by_step or view.by_step(s, everyone, episodes)
        if held:
            steps = torch.where(_rows(held, steps), steps.detach(), steps)
        p = L.match_times(steps, mask, L.SOFTMAX_SCALE)
        p = L.spread(p, mask, options.diversity_window)
        diversity = diversity + weight * L.DIVERSITY[options.diversity](p).sum()
    return ContrastiveLoss(success, failure, diversity, success_best, failure_best)


def _at(s: Tensor, prototypes: tuple[int, ...], index: Tensor) -> Tensor:
    """Scores s [H, N] of these prototypes at positions [K, T]: [h, K, T].

    Gathered: the backward pass of an index by tensors takes several times as long.
    """
    own = s if prototypes == tuple(range(len(s))) else s[list(prototypes)]
    return own.gather(1, index.reshape(1, -1).expand(len(own), -1)).unflatten(1, index.shape)


def _rows(which: Collection[int], s: Tensor) -> Tensor:
    """Mask [H, 1, 1] of these rows of s [H, K, T]."""
    mask = torch.zeros(len(s), 1, 1, dtype=torch.bool, device=s.device)
    mask[list(which)] = True
    return mask


def overlaps(
    model: Prototypes, prototypes: Sequence[int], episodes: Episodes, options: ConSpecOptions
) -> Tensor:
    """How far prototypes match the same steps: mean cosine of their match times, [h, h]."""
    asked = tuple(prototypes)
    view = View(model, [Contrast(asked, episodes, ())])
    s = view.scores_without_graph([(asked, episodes)])
    steps, mask = view.by_step(s, asked, episodes)
    p = L.match_times(steps, mask, L.SOFTMAX_SCALE)
    return L.overlap(L.spread(p, mask, options.diversity_window)).mean(dim=0)


def best_matches(
    model: Prototypes, prototypes: Sequence[int], episodes: Episodes, top_k: int
) -> Tensor:
    """Best match of every prototype in every episode, without a graph: [len(prototypes), K]."""
    view = View(model, [Contrast(tuple(prototypes), episodes, ())])
    s = view.scores_without_graph([(tuple(prototypes), episodes)])
    return L.best_match(*view.by_step(s, tuple(prototypes), episodes), top_k)


def best_unclaimed(
    model: Prototypes,
    claims: Sequence[tuple[Sequence[int], Sequence[int]]],
    active: int,
    successes: Episodes,
    failures: Episodes,
    options: ConSpecOptions,
) -> tuple[Tensor, Tensor]:
    """Best match of every prototype in successes and failures, without a graph: [active, K] both.
    `claims`: (who claims, against whom); in a success, there is no match for the latter where one
    of the former has its own.
    """
    everyone = tuple(range(active))
    view = View(model, [Contrast(everyone, successes, failures)])
    s = view.scores_without_graph([(everyone, successes), (everyone, failures)])
    won = L.best_match(*view.by_step(s, everyone, successes), options.top_k)
    lost = L.best_match(*view.by_step(s, everyone, failures), options.top_k)
    for claimants, others in claims:
        view.claim(s, tuple(claimants), successes, options)
        free = view.by_step(s, tuple(others), successes)
        won[list(others)] = L.best_match(*free, options.top_k)
    return won, lost


def _diversity_sets(
    options: ConSpecOptions, active: int, live: Contrast, contrasts: Sequence[Contrast]
) -> list[tuple[Episodes, float]]:
    """Successes on which D is taken, with the weight of each set."""
    weight = options.diversity_coeff / active
    if weight == 0 or (active < 2 and options.diversity == "cosine"):
        return []
    if options.form == "code":
        return [(c.successes, weight * len(c.prototypes)) for c in contrasts]
    return [(live.successes, weight)]


class View:
    """The different frames of all episodes in a step, and scores laid out over them."""

    def __init__(
        self, model: Prototypes, contrasts: Sequence[Contrast], candidates: int | None = None
    ) -> None:
        """All frames are looked at once, by the model as it is then. `candidates`: those among the
        best so many of an episode for some prototype are all that counts, in any number of steps.
        None: all count, in a single step.
        """
        self.model = model
        self.device = model.vectors.device
        self.distinct = DistinctFrames.of(e for c in contrasts for e in (*c.successes, *c.failures))
        self._count = len(self.distinct)
        small = self._count * math.prod(self.distinct.shape) <= KEPT
        self._frames = to_device(self.distinct.frames, self.device) if small else None
        self._taken: tuple[Tensor, Tensor] | None = None  # positions, and the frames there
        self._padded: dict[int, tuple[Tensor, Tensor]] = {}
        self.claims: dict[int, Tensor] = {}  # id of episodes → bool [K, T]
        self._with_claims: dict[int, Tensor] = {}  # id of episodes → which of them have one
        self._candidates = candidates
        self._z: Tensor | None = None
        self._scored: tuple[Tensor, Tensor] | None = None  # which scores are known, and these
        self._kept: _Kept | None = None  # the candidates, once they are known

    def layout(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Positions [K, T] among the different frames, and mask [K, T]."""
        if id(episodes) not in self._padded:
            self._padded[id(episodes)] = tuple(
                to_device(array, self.device) for array in self.distinct.padded(episodes)
            )
        return self._padded[id(episodes)]

    def by_step(
        self, s: Tensor, prototypes: tuple[int, ...], episodes: Episodes
    ) -> tuple[Tensor, Tensor]:
        """Scores of these prototypes in these episodes [h, K, T], and mask [K, T]."""
        index, mask = self.layout(episodes)
        if id(episodes) in self.claims:
            mask = mask & ~self.claims[id(episodes)]
        return _at(s, prototypes, index), mask

    def claim(
        self, s: Tensor, prototypes: tuple[int, ...], episodes: Episodes, options: ConSpecOptions
    ) -> None:
        """From now on the best matches of these prototypes in these episodes, and the steps around
        them, are not to be had by others.
        """
        self.claims.pop(id(episodes), None)
        self._with_claims.pop(id(episodes), None)
        at = self.by_step(s, prototypes, episodes)
        self.claims[id(episodes)] = L.claimed(*at, options.threshold, options.diversity_window)

    def best_claimed(self, s: Tensor, contrast: Contrast) -> Tensor:
        """Best match in what others claim of the successes: [h, those with a claim]."""
        claims, key = self.claims[id(contrast.successes)], id(contrast.successes)
        if key not in self._with_claims:
            self._with_claims[key] = claims.any(dim=1).nonzero().squeeze(1)
        some = self._with_claims[key]
        index = self.layout(contrast.successes)[0][some]
        return L.best_match(_at(s, contrast.prototypes, index), claims[some])

    def scores_without_graph(self, needed: list[tuple[tuple[int, ...], Episodes]]) -> Tensor:
        """s [H, N]; those of the (prototypes, episodes) asked for are right."""
        need = self._need(needed)
        with torch.no_grad():
            if self._scored is None or (need & ~self._scored[0]).any():
                self._scored = need, self.model.needed_scores(self._features(), need)
        return self._scored[1]

    def _features(self) -> Tensor:
        """z of all frames."""
        if self._z is None:
            if self._frames is None:
                self._z = self.model.encode_all(self.distinct)
            else:
                self._z = self.model.encode(self._frames)
        return self._z

    def at(self, positions: Tensor) -> Tensor:
        """The frames at these positions, on the device."""
        if self._frames is not None:
            return self._frames[positions]
        if self._taken is None or self._taken[0] is not positions:
            ascending, place = torch.unique(positions.cpu(), return_inverse=True)
            found = to_device(self.distinct.take(ascending.numpy()), self.device)
            self._taken = positions, found[place.to(self.device)]
        return self._taken[1]

    def scores(self, best_of, softmax_of, top_k: int) -> Tensor:
        """s [H, N] with a graph behind those scores that carry the loss's gradient."""
        needed = best_of + softmax_of
        if self._candidates is not None:
            return self._scores_of_candidates(needed, top_k)
        s = self.scores_without_graph(needed)
        scale = L.SOFTMAX_SCALE
        carry = self._marked(s, best_of, lambda *at: L.carries_gradient(*at, top_k=top_k))
        carry |= self._marked(
            s, softmax_of, lambda *at: L.carries_gradient(*at, top_k=top_k, softmax_scale=scale)
        )
        known = carry.cpu()  # waits for the device, once: how much is to be computed is seen here
        which = known.any(dim=0).nonzero().squeeze(1)
        z = self.model.encode(self.at(which))
        with_graph = self.model.needed_scores(z, known[:, which])
        frames = which.to(self.device)
        return s.index_copy(1, frames, torch.where(carry[:, frames], with_graph, s[:, frames]))

    def _scores_of_candidates(self, needed, top_k: int) -> Tensor:
        """With a graph behind all of them; −∞ for other frames. A softmax over all frames whose
        gradient reaches only some of them would push these up for nothing.
        """
        if self._kept is None:
            count = top_k - 1 + self._candidates
            s = self.scores_without_graph(needed)
            best = self._marked(s, needed, lambda *at: L.among_best(*at, count))
            which = best.any(dim=0).cpu().nonzero().squeeze(1)
            need = self._need(needed)[:, which]
            self._kept = _Kept(which.to(self.device), self.at(which), need)
        kept = self._kept
        found = self.model.needed_scores(self.model.encode(kept.frames), kept.need)
        everywhere = found.new_full((len(found), self._count), -torch.inf)
        return everywhere.index_copy(1, kept.positions, found)

    def _need(self, needed: list[tuple[tuple[int, ...], Episodes]]) -> Tensor:
        """Bool [H, N]: the frames of these (prototypes, episodes). On the CPU."""
        need = np.zeros((len(self.model.vectors), self._count), dtype=bool)
        for prototypes, episodes in needed:
            shown = np.zeros(self._count, dtype=bool)
            shown[np.concatenate([self.distinct.index[id(e)] for e in episodes])] = True
            need[list(prototypes)] |= shown
        return torch.from_numpy(need)

    def _marked(self, s: Tensor, asked, mark) -> Tensor:
        """Where `mark` of (prototypes, episodes) says so, among free steps or claimed ones: bool
        [H, N].
        """
        marked = torch.zeros_like(s, dtype=torch.bool)
        for prototypes, episodes in asked:
            steps, free = self.by_step(s, prototypes, episodes)
            found = mark(steps, free)
            if id(episodes) in self.claims:
                found |= mark(steps, self.claims[id(episodes)])
            # Without asking where they are, which would have to wait for the device.
            index = self.layout(episodes)[0].flatten().expand(len(found), -1)
            hits = torch.zeros(len(found), self._count, dtype=torch.uint8, device=self.device)
            hits.scatter_reduce_(1, index, found.flatten(1).to(hits), "amax")
            marked[list(prototypes)] |= hits.bool()
        return marked


@dataclass(frozen=True)
class _Kept:
    """The frames that all steps on one draw look at."""

    positions: Tensor  # [n], among all different frames
    frames: Tensor  # [n, *shape]
    need: Tensor  # bool [H, n], on the CPU: which prototypes look at which
