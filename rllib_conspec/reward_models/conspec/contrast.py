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

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.view import Contrast, Episodes, View


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

    matches = view.matches(contrasts)
    won, lost = matches.best(s, options.top_k)
    success = L.success_loss(won, matches.shares[0])
    failure = options.failure_coeff * L.failure_loss(lost, matches.shares[1])
    diversity = s.new_zeros(())
    held = [n for n, i in enumerate(everyone) if i not in live.prototypes]
    held = held if options.diversity_moves == "live" else ()
    for episodes, weight in diverse:
        steps, mask = view.by_step(s, everyone, episodes)
        if held:
            steps = torch.where(_rows(held, steps), steps.detach(), steps)
        p = L.match_times(steps, mask, L.SOFTMAX_SCALE)
        p = view.spread(p, episodes, options.diversity_window)
        diversity = diversity + weight * L.DIVERSITY[options.diversity](p).sum()
    best = matches.by_prototype([won.detach(), lost.detach()])
    return ContrastiveLoss(success, failure, diversity, *best)


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
    return L.overlap(view.spread(p, episodes, options.diversity_window)).mean(dim=0)


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
