"""The different frames of some episodes, and the scores of prototypes laid out over them.

Frames are scored without a graph first, which shows the few that carry gradient; only these are
scored again with one. Where several gradient steps follow on the same episodes, the steps look only
at candidates, the frames that were among the best few of an episode for some prototype.

Where the scores of a prototype in an episode stand is a row of places (`rows.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rllib_conspec.networks.devices import to_device
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec import rows as R
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
        self._shown: dict[int, np.ndarray] = {}  # id of episodes → which frames they show
        self.claims: dict[int, Tensor] = {}  # id of episodes → bool [K, T]
        self._candidates = candidates
        self._z: Tensor | None = None
        self._scored: tuple[Tensor, Tensor] | None = None  # which scores are known, and these
        self._kept: _Kept | None = None  # the candidates, once they are known
        self._laid: dict[int, _Laid] = {}  # id of episodes → where their scores are
        self._places: dict[tuple, Tensor] = {}  # (prototypes, id of episodes) → their rows
        self._matches: dict[tuple, R.Matches] = {}  # (those) of contrasts → where these look

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
        """Scores of these prototypes in these episodes [h, K, T], and mask [K, T] of steps that
        count: real, claimed by nobody and, when candidates are known, showing one.
        """
        key = prototypes, id(episodes)
        laid = self._laid_out(episodes)
        if key not in self._places:
            self._places[key] = self._rows(prototypes, laid.index, laid.free)
        return R.scores_at(s, self._places[key]), laid.free

    def spread(self, p: Tensor, episodes: Episodes, window: int) -> Tensor:
        """Match times as `by_step` lays them out, summed over neighbouring steps: [h, K, T]."""
        return L.spread(p, self._laid_out(episodes).reached, window)

    def matches(self, contrasts: Sequence[Contrast]) -> R.Matches:
        """Where the prototypes of these contrasts look for their best matches: in their successes,
        and in failures and what others claim of the successes.
        """
        key = tuple((c.prototypes, id(c.successes), id(c.failures)) for c in contrasts)
        if key not in self._matches:
            won, lost = [], []
            for c in contrasts:
                yes, no = self._laid_out(c.successes), self._laid_out(c.failures)
                won += self._rows(c.prototypes, yes.index, yes.free)
                found = [*self._rows(c.prototypes, no.index, no.free)]
                if yes.claimed is not None:
                    some = yes.claimed.any(dim=1)
                    taken = self._rows(c.prototypes, yes.index[some], yes.claimed[some])
                    found = [R.joined(both) for both in zip(found, taken, strict=True)]
                lost += found
            everyone = [i for c in contrasts for i in c.prototypes]
            self._matches[key] = R.Matches.of(everyone, won, lost, self.model.vectors.dtype)
        return self._matches[key]

    def _rows(self, prototypes: tuple[int, ...], index: Tensor, mask: Tensor) -> Tensor:
        """Where the scores of these prototypes stand: [h, K, T]."""
        count = self._count if self._kept is None else len(self._kept.positions)
        first = to_device(1 + count * np.array(prototypes), self.device)
        return (first[:, None, None] + index) * mask

    def _laid_out(self, episodes: Episodes) -> _Laid:
        if id(episodes) not in self._laid:
            index, mask = self.layout(episodes)
            claims = self.claims.get(id(episodes))
            free = mask if claims is None else mask & ~claims
            laid = _Laid(index, free, claims, free)
            self._laid[id(episodes)] = laid if self._kept is None else self._candidates_of(laid)
        return self._laid[id(episodes)]

    def _candidates_of(self, laid: _Laid) -> _Laid:
        """The same where only candidates count."""
        place = torch.full((self._count,), -1, device=self.device)
        place[self._kept.positions] = torch.arange(len(self._kept.positions), device=self.device)
        index = place[laid.index]
        shown = index >= 0
        claimed = None if laid.claimed is None else laid.claimed & shown
        return _Laid(index, laid.free & shown, claimed, laid.reached)

    def _lay_out_anew(self) -> None:
        for known in (self._laid, self._places, self._matches):
            known.clear()

    def claim(
        self, s: Tensor, prototypes: tuple[int, ...], episodes: Episodes, options: ConSpecOptions
    ) -> None:
        """From now on the best matches of these prototypes in these episodes, and the steps around
        them, are not to be had by others.
        """
        if self.claims.pop(id(episodes), None) is not None:
            self._lay_out_anew()
        at = self.by_step(s, prototypes, episodes)
        self.claims[id(episodes)] = L.claimed(*at, options.threshold, options.diversity_window)
        self._lay_out_anew()

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
        """s [H, N] with a graph behind those scores that carry the loss's gradient; where only
        candidates count, [H, candidates].
        """
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
        """s [H, candidates] with a graph behind all of them; other frames do not count from now on.
        A softmax over all frames whose gradient reaches only some of them would push these up for
        nothing.
        """
        if self._kept is None:
            count = top_k - 1 + self._candidates
            s = self.scores_without_graph(needed)
            best = self._marked(s, needed, lambda *at: L.among_best(*at, count))
            which = best.any(dim=0).cpu().nonzero().squeeze(1)
            need = self._need(needed)[:, which]
            self._kept = _Kept(which.to(self.device), self.at(which), need)
            self._lay_out_anew()
        kept = self._kept
        return self.model.needed_scores_of(kept.frames, kept.need)

    def _need(self, needed: list[tuple[tuple[int, ...], Episodes]]) -> Tensor:
        """Bool [H, N]: the frames of these (prototypes, episodes). On the CPU."""
        need = np.zeros((len(self.model.vectors), self._count), dtype=bool)
        for prototypes, episodes in needed:
            if id(episodes) not in self._shown:
                shown = self._shown[id(episodes)] = np.zeros(self._count, dtype=bool)
                shown[np.concatenate([self.distinct.index[id(e)] for e in episodes])] = True
            need[list(prototypes)] |= self._shown[id(episodes)]
        return torch.from_numpy(need)

    def _marked(self, s: Tensor, asked, mark) -> Tensor:
        """Where `mark` of (prototypes, episodes) says so, among free steps or claimed ones: bool
        [H, N].
        """
        marked = torch.zeros(1 + s.numel(), dtype=torch.bool, device=self.device)
        rows = [marked.new_zeros(1, 1, dtype=torch.long)]  # nobody may have asked
        for prototypes, episodes in {(p, id(e)): (p, e) for p, e in asked}.values():
            laid = self._laid_out(episodes)
            for mask in (laid.free, laid.claimed):
                if mask is not None:
                    rows.append(self._rows(prototypes, laid.index, mask).flatten(0, 1))
        at = R.joined(rows)
        found = mark(R.scores_at(s, at), at > 0)
        # Without asking where they are, which would have to wait for the device.
        marked.index_fill_(0, (at * found).flatten(), True)
        return marked[1:].view(s.shape)


@dataclass(frozen=True)
class _Laid:
    """Where the scores of some episodes stand: all [K, T]."""

    index: Tensor  # among all different frames, or among the candidates
    free: Tensor  # mask of real steps that nobody claims; of these, candidates
    claimed: Tensor | None  # mask of those that somebody does
    reached: Tensor  # mask of real steps that nobody claims, candidates or not


@dataclass(frozen=True)
class _Kept:
    """The frames that all steps on one draw look at."""

    positions: Tensor  # [n], among all different frames
    frames: Tensor  # [n, *shape]
    need: Tensor  # bool [H, n], on the CPU: which prototypes look at which
