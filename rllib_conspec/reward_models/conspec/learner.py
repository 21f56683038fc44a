"""The learner's side of ConSpec: memories, contrastive steps, freezing, recruiting."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.networks.devices import copied
from rllib_conspec.networks.normalizing import normalizes, observe
from rllib_conspec.networks.optimizers import keeping_settings
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.ages import HELD_OUT, Ages
from rllib_conspec.reward_models.conspec.contrast import (
    ContrastiveLoss,
    best_matches,
    best_unclaimed,
    contrastive_loss,
    overlaps,
)
from rllib_conspec.reward_models.conspec.fortunes import NOTHING, Fortunes, Share
from rllib_conspec.reward_models.conspec.judging import Verdict
from rllib_conspec.reward_models.conspec.memory import Newest
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.recolouring import Recolouring
from rllib_conspec.reward_models.conspec.scorer import Snapshot
from rllib_conspec.reward_models.conspec.view import Contrast, View

MEMORIES = {"newest": Newest, "ages": Ages}
# Best frames of an episode, for each prototype, that all steps on one draw look at.
CANDIDATES = 1
# Mean cosine of match times from which two prototypes are said to match the same steps.
SAME = 0.5
# Batches after its freezing that are of a prototype's own time: the policy is nearly the same.
OWN_TIME = 5
# Iterations from one judgement to the next: as many frames are looked at as in learning, and in
# between neither the prototypes nor the held-out episodes change by much.
JUDGED_EVERY = 2
ADAM_EPS = 1e-5


class ConSpecLearner:
    """The learner's side: memories, prototypes, contrastive steps, freezing and recruiting."""

    def __init__(
        self,
        options: ConSpecOptions,
        shape: Sequence[int],
        device: torch.device | str = "cpu",
        seed: int | None = None,
        **view: Any,
    ) -> None:
        self.options = options
        self._shape, self._view = tuple(shape), view
        self.iterations = 0  # with contrastive steps in them
        self.batches = 0  # taken in
        self.met_at: dict[int, int] = {}  # who met the criterion → batches taken in by then
        self.fortunes = Fortunes()
        self.fortune_at: dict[int, Share] = {}  # frozen prototype → how often it succeeded then
        self._rng = np.random.default_rng(seed)
        self.memory = MEMORIES[options.memory](options, self._rng)
        self.met = np.zeros(options.num_prototypes, dtype=bool)  # reached the criterion for good
        self.streak = np.zeros(options.num_prototypes, dtype=np.int64)
        self.active = options.recruit_start or options.num_prototypes
        # Frozen prototype → those whose steps were taken when it was frozen.
        self.found_before: dict[int, tuple[int, ...]] = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self._rng.integers(2**31)))
            self.model = Prototypes(options, shape, **view).to(device)
        self._optimizer_state: dict[str, Any] | None = None  # from a checkpoint
        self.recolouring = Recolouring(self.model, view)
        self.unseen_separation = np.full(options.num_prototypes, np.nan)

    @functools.cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        """Made when it is first needed: torch imports its compiler with the first optimizer of a
        process, more than a second, and who looks at a checkpoint needs none.
        """
        made = torch.optim.AdamW(
            [p for p in self.model.parameters() if p.requires_grad],
            lr=self.options.lr,
            eps=ADAM_EPS,
            weight_decay=self.options.weight_decay,
            fused=True,  # one pass over the parameters instead of ten
        )
        if self._optimizer_state is not None:
            with keeping_settings([made]):
                made.load_state_dict(self._optimizer_state)
            self._optimizer_state = None
        return made

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    # --- memories -----------------------------------------------------------------------------

    def add(self, won: Sequence[Episode], lost: Sequence[Episode]) -> None:
        """Take in the chosen successes and failures of a batch."""
        if not self.options.learn:
            return
        self.batches += 1
        self.fortunes.add(len(won), len(won) + len(lost))
        if self.options.memory == "newest":
            self._note_unseen(won, lost)
        self.memory.add(won, lost)
        if normalizes(self.model):
            seen = np.concatenate([e.frames for e in (*won, *lost)])
            observe(self.model, torch.from_numpy(seen))

    def start_from(self, demonstrations: Sequence[PackedEpisode]) -> None:
        """Hold these successes, which somebody else had."""
        if demonstrations:
            self.memory.start_from(demonstrations)

    @property
    def learning(self) -> bool:
        """Whether the memories hold enough to learn from."""
        return self.memory.ready

    # --- learning -----------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """The contrastive steps of one iteration, then freezing and recruiting. Returns metrics."""
        metrics: dict[str, Any] = {}
        if self.learning and self.options.learn:
            self._recruit()  # before the steps: a new prototype must not pay untrained
            metrics = self._gradient_steps()
            self.iterations += 1
            if self.options.memory == "ages" and self.iterations % JUDGED_EVERY == 0:
                self._judge()
                self._freeze()
        elif self.options.recolour and self.learning and self.met.any():
            drawn, _ = self.memory.draw(range(self.active))
            paying = np.flatnonzero(self.met).tolist()
            metrics = self.recolouring.steps(self.optimizer, paying, drawn, self._rng)
        return metrics | self._counts()

    def _gradient_steps(self) -> dict[str, Any]:
        """The steps of one iteration, on one draw of episodes."""
        o = self.options
        live, frozen = self.memory.draw([i for i in range(self.active) if i not in self._frozen])
        if not live.prototypes and not frozen:
            return {"separation": {}}
        view = View(self.model, [live, *frozen], CANDIDATES if o.steps_per_iteration > 1 else None)
        if o.memory == "ages":
            self._claim(view, live, frozen)
        for _ in range(o.steps_per_iteration):
            parts = contrastive_loss(view, o, self.active, live, frozen)
            self.optimizer.zero_grad(set_to_none=True)
            parts.total.backward()
            self.optimizer.step()
            if o.memory == "newest":
                self._note_criterion(parts)
                self._freeze()
        return self._measured(parts)

    def _claim(self, view: View, live: Contrast, frozen: Sequence[Contrast]) -> None:
        """First come, first served: a prototype looks for its steps where none that was frozen
        before it has found its own. Otherwise most would end on the step that separates best, or
        drift there after they were frozen.
        """
        before = {others: claimants for claimants, others in self._claims()}
        asked = [(before.get(c.prototypes, ()), c.successes) for c in (*frozen, live)]
        asked = [claim for claim in asked if claim[0]]
        if not asked:
            return
        # With what the steps will ask for, so that all is scored at once.
        own = [(c.prototypes, e) for c in (live, *frozen) for e in (c.successes, c.failures)]
        s = view.scores_without_graph(asked + own)
        for claim in asked:
            view.claim(s, *claim, self.options)

    def _claims(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Who claims steps, against whom: those that tell successes from failures, against the live
        ones; against a frozen one, those that told when it was frozen. One that tells no longer,
        because the policy always comes by its step, must not hide what decides right next to it.
        """
        claims = [(self.found_before.get(i, ()), (i,)) for i in self.memory.frozen]
        live = tuple(i for i in range(self.active) if i not in self.memory.frozen)
        claims.append((tuple(i for i in self.memory.frozen if self._tells[i]), live))
        return [(claimants, others) for claimants, others in claims if claimants and others]

    @property
    def _tells(self) -> np.ndarray:
        """Who still tells successes from failures, on episodes that nobody learned from: bool [H].

        With memory `newest` a frozen prototype counts as telling: nothing is held back to judge by.
        """
        if self.options.memory != "ages":
            return self.met
        return self.met & (self.unseen_separation > self.options.threshold / 2)

    @property
    def _frozen(self) -> Collection[int]:
        """Prototypes with exemplars of their own."""
        return self.memory.frozen

    def _note_criterion(self, parts: ContrastiveLoss) -> None:
        """Count the steps for which each prototype has met the criterion."""
        for i, (won, lost) in parts.measured[1].items():
            means = torch.tensor([[won]]), torch.tensor([[lost]])
            reached = L.meets_criterion(*means, self.options.threshold)
            self.streak[i] = self.streak[i] + 1 if bool(reached) else 0

    def _measured(self, parts: ContrastiveLoss) -> dict[str, Any]:
        """Metrics of a step."""
        (total, success, failure, diversity), best = parts.measured
        gap = np.full(self.options.num_prototypes, np.nan)
        for i, (won, lost) in best.items():
            gap[i] = won - lost
        return {
            "loss": total,
            "loss_success": success,
            "loss_failure": failure,
            "loss_diversity": diversity,
            "separation": _by_prototype(gap),
        }

    def _judge(self) -> None:
        """Judge the prototypes on ages that were not learned from: each success against failures
        of its own age. What is found counts for all steps since the last time.
        """
        o = self.options
        ages = self.memory.held_out()
        if not ages:
            return
        every = [tuple(e for age in ages for e in age[kind]) for kind in (1, 2)]
        best = best_unclaimed(self.model, self._claims(), self.active, *every, o)
        won, lost = (
            np.split(b.cpu().numpy(), np.cumsum([len(age[kind]) for age in ages])[:-1], axis=1)
            for kind, b in enumerate(best, start=1)
        )
        verdict = Verdict.of(won, lost)
        grown = self.streak[: self.active] + JUDGED_EVERY * o.steps_per_iteration
        self.streak[: self.active] = np.where(verdict.reaches(o.threshold), grown, 0)
        self.unseen_separation[: self.active] = verdict.separation
        gone = verdict.refutes(o.threshold)
        for i, last in list(self.memory.frozen.items()):
            after = [k for k, (number, *_) in enumerate(ages) if 0 < number - last <= OWN_TIME]
            if gone[i] and self.fortunes.lately.below(self.fortune_at.get(i, NOTHING)):
                self._thaw(i)
            elif after:
                own = Verdict.of([won[k] for k in after], [lost[k] for k in after])
                if own.successes >= HELD_OUT and own.refutes(o.threshold)[i]:
                    self._thaw(i)

    def _thaw(self, i: int) -> None:
        """It is refuted: a live prototype again, which pays nothing.

        New episodes of its own time do so where they do not differ by it. Later ones say nothing
        against it by that alone: once the policy always takes a critical step, failures have it,
        too. But then the agent succeeds more often. If it succeeds less often than when the
        prototype froze, the policy has found something else that matches, and lives on its pay.
        """
        self.memory.thaw(i)
        self.found_before.pop(i, None)
        self.fortune_at.pop(i, None)
        self.met_at.pop(i, None)
        self.met[i], self.streak[i] = False, 0

    def _note_unseen(self, won: Sequence[Episode], lost: Sequence[Episode]) -> None:
        """Record how well new episodes are separated before they are learned from."""
        if not won or not lost or not self.learning:
            return
        everyone = range(self.active)
        gap = (
            L.separation(
                best_matches(self.model, everyone, won, self.options.top_k),
                best_matches(self.model, everyone, lost[: 2 * len(won)], self.options.top_k),
            )
            .cpu()
            .numpy()
        )
        before = self.unseen_separation[: self.active]
        blend = np.where(np.isnan(before), gap, 0.8 * before + 0.2 * gap)
        self.unseen_separation[: self.active] = blend

    def _freeze(self) -> None:
        """Give prototypes that met the criterion long enough exemplars of their own."""
        due = np.flatnonzero((self.streak >= self.options.freeze_after) & ~self.met)
        shared = self._shared_steps() if self.options.freeze_distinct and len(due) else None
        for i in due:
            if shared is not None and (shared[i][self._tells[: self.active]] > SAME).any():
                continue  # found already; one that tells nothing cannot be what this one tells by
            if self.options.freeze:
                telling = [int(j) for j in self.memory.frozen if self._tells[j]]
                self.found_before[int(i)] = tuple(telling)
                self.fortune_at[int(i)] = self.fortunes.lately
                self.memory.freeze(int(i))
            self.met[i] = True
            self.met_at[int(i)] = self.batches

    def _shared_steps(self) -> np.ndarray:
        """How far any two prototypes match the same steps of successes: [active, active]."""
        newest = self.memory.newest_successes()
        return overlaps(self.model, range(self.active), newest, self.options).cpu().numpy()

    def _recruit(self) -> None:
        if self.met[: self.active].all() and self.active < self.options.num_prototypes:
            self.active += 1

    # --- what others see ----------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        pays = self._pays()
        weights = self.model.weights_of(np.flatnonzero(pays)) if pays.any() else {}
        return Snapshot(_to_numpy(weights), pays)

    def _pays(self) -> np.ndarray:
        if self.options.form == "paper":
            # Prototypes that no gradient has touched yet are noise.
            return (np.arange(len(self.met)) < self.active) & self.learning
        return self.met.copy()

    def _counts(self) -> dict[str, Any]:
        successes, failures = self.memory.count
        return {
            "successes": successes,
            "failures": failures,
            "prototypes": self.active,
            "frozen": int(self.met.sum()),
            "unseen_separation": _by_prototype(self.unseen_separation),
        }

    def get_state(self) -> dict[str, Any]:
        """Everything needed to continue exactly, sharing nothing with the learner."""
        return {
            "options": self.options.to_dict(),
            "shape": self._shape,
            "view": dict(self._view),
            "model": _to_numpy(self.model.state_dict()),
            "optimizer": copied(self.optimizer.state_dict()),
            "memory": self.memory.get_state(),
            "met": self.met.copy(),
            "streak": self.streak.copy(),
            "active": self.active,
            "found_before": dict(self.found_before),
            "iterations": self.iterations,
            "batches": self.batches,
            "met_at": dict(self.met_at),
            "fortunes": [tuple(batch) for batch in self.fortunes.batches],
            "fortune_at": {i: tuple(share) for i, share in self.fortune_at.items()},
            "unseen_separation": self.unseen_separation.copy(),
            "recolouring": self.recolouring.get_state(),
            "rng": self._rng.bit_generator.state,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ConSpecLearner:
        """The learner that `state` was taken from, for looking at it without an algorithm."""
        learner = cls(ConSpecOptions(**state["options"]), state["shape"], **state["view"])
        learner.set_state(state)
        return learner

    def set_state(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict({k: torch.from_numpy(v) for k, v in state["model"].items()})
        self._optimizer_state = copy.deepcopy(state["optimizer"])
        self.__dict__.pop("optimizer", None)  # the next one begins with that
        self.memory.set_state(state["memory"])
        self.met, self.streak = state["met"].copy(), state["streak"].copy()
        self.active, self.iterations = state["active"], state["iterations"]
        self.batches, self.met_at = state.get("batches", 0), dict(state.get("met_at", {}))
        self.found_before = dict(state.get("found_before", {}))
        self.fortunes = Fortunes(state.get("fortunes", ()))
        self.fortune_at = {i: Share(*share) for i, share in state.get("fortune_at", {}).items()}
        self.unseen_separation = state["unseen_separation"].copy()
        self.recolouring.set_state(state.get("recolouring", {}))
        self._rng.bit_generator.state = state["rng"]


def _to_numpy(weights: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: w.detach().cpu().numpy().copy() for name, w in weights.items()}


def _by_prototype(values: np.ndarray) -> dict[str, float]:
    return {str(i): float(v) for i, v in enumerate(values) if not np.isnan(v)}
