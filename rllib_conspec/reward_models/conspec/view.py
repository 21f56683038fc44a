"""The different frames of some episodes, and the scores of prototypes laid out over them.

Frames are scored without a graph first, which shows the few that carry gradient; only these are
scored again with one. Where several gradient steps follow on the same episodes, the steps look only
at candidates, the frames that were among the best few of an episode for some prototype, and what is
laid out are these alone.
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
        self.claims: dict[int, Tensor] = {}  # id of episodes → bool [K, T]
        self._with_claims: dict[int, Tensor] = {}  # id of episodes → which of them have one
        self._candidates = candidates
        self._z: Tensor | None = None
        self._scored: tuple[Tensor, Tensor] | None = None  # which scores are known, and these
        self._kept: _Kept | None = None  # the candidates, once they are known
        self._compact: dict[int, _Laid] = {}  # id of episodes → where their candidates are
        self._reach: dict[tuple[int, int], Tensor] = {}  # (that, window) → [K, candidates, steps]

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
        """Scores of these prototypes in these episodes [h, K, T], and mask [K, T]. When candidates
        are known, T counts an episode's candidates, not its steps.
        """
        laid = self._laid_out(episodes)
        return _at(s, prototypes, laid.index), laid.free

    def spread(self, p: Tensor, episodes: Episodes, window: int) -> Tensor:
        """Match times as `by_step` lays them out, summed over neighbouring steps: [h, K, steps]."""
        laid = self._laid_out(episodes)
        if laid.times is None:
            return L.spread(p, laid.free, window)
        if (id(episodes), window) not in self._reach:
            steps = torch.arange(self.layout(episodes)[1].shape[1], device=self.device)
            near = (steps - laid.times[..., None]).abs() <= window  # [K, candidates, steps]
            near &= self._free(episodes)[:, None]
            self._reach[id(episodes), window] = near.to(p.dtype)
        return (p.transpose(0, 1) @ self._reach[id(episodes), window]).transpose(0, 1)

    def _free(self, episodes: Episodes) -> Tensor:
        """Real steps that nobody claims, [K, steps]."""
        _, mask = self.layout(episodes)
        return mask & ~self.claims[id(episodes)] if id(episodes) in self.claims else mask

    def _laid_out(self, episodes: Episodes) -> _Laid:
        if self._kept is None:
            index, _ = self.layout(episodes)
            return _Laid(index, self._free(episodes), self.claims.get(id(episodes)), None)
        if id(episodes) not in self._compact:
            self._compact[id(episodes)] = self._candidates_only(episodes)
        return self._compact[id(episodes)]

    def _candidates_only(self, episodes: Episodes) -> _Laid:
        """The steps that show a candidate, a few of many: everything that follows costs as much
        less.
        """
        index, mask = self.layout(episodes)
        place = torch.full((self._count,), -1, device=self.device)
        place[self._kept.positions] = torch.arange(len(self._kept.positions), device=self.device)
        shown = (place[index] >= 0) & mask
        most = int(shown.sum(dim=1).max())
        times = shown.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        claims = self.claims.get(id(episodes))
        shown = shown.gather(1, times)
        return _Laid(
            place[index.gather(1, times)].clamp_min(0),
            self._free(episodes).gather(1, times) & shown,
            None if claims is None else claims.gather(1, times) & shown,
            times,
        )

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
        key, laid = id(contrast.successes), self._laid_out(contrast.successes)
        if key not in self._with_claims:
            self._with_claims[key] = self.claims[key].any(dim=1).nonzero().squeeze(1)
        some = self._with_claims[key]
        return L.best_match(_at(s, contrast.prototypes, laid.index[some]), laid.claimed[some])

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
        kept = self._kept
        return self.model.needed_scores(self.model.encode(kept.frames), kept.need)

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
class _Laid:
    """Where the scores of some episodes stand: all [K, T]."""

    index: Tensor  # among all different frames, or among the candidates
    free: Tensor  # mask of real steps that nobody claims
    claimed: Tensor | None  # mask of those that somebody does
    times: Tensor | None  # steps that the candidates are; None: all steps in order


@dataclass(frozen=True)
class _Kept:
    """The frames that all steps on one draw look at."""

    positions: Tensor  # [n], among all different frames
    frames: Tensor  # [n, *shape]
    need: Tensor  # bool [H, n], on the CPU: which prototypes look at which


def _at(s: Tensor, prototypes: tuple[int, ...], index: Tensor) -> Tensor:
    """Scores s [H, N] of these prototypes at positions [K, T]: [h, K, T].

    Gathered: the backward pass of an index by tensors takes several times as long.
    """
    own = s if prototypes == tuple(range(len(s))) else s[list(prototypes)]
    return own.gather(1, index.reshape(1, -1).expand(len(own), -1)).unflatten(1, index.shape)
