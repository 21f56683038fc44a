"""The learner's side of ConSpec: memories, contrastive steps, freezing, recruiting."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.contrast import (
    Contrast,
    best_matches,
    contrastive_loss,
    overlaps,
)
from rllib_conspec.reward_models.conspec.memory import (
    EpisodeMemory,
    Exemplars,
    Reservoir,
    draw,
    pack,
    unpack,
)
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.scorer import Snapshot

# A separation up to this is none: the prototype sits on frames that every episode has.
NOTHING = 0.1
# Mean cosine of match times from which two prototypes are said to match the same steps.
SAME = 0.5
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
        self._rng = np.random.default_rng(seed)
        self.successes = EpisodeMemory(options.memory_size)
        self.failures = self._failure_memory(options.failures_kept)
        # Episodes not yet trained on, when the criterion asks for such; then they move on.
        self.unseen_successes = EpisodeMemory(options.unseen_successes)
        self.unseen_failures = self._failure_memory(options.unseen_failures)
        self.exemplars: dict[int, Exemplars] = {}
        self.met = np.zeros(options.num_prototypes, dtype=bool)  # reached the criterion for good
        self.streak = np.zeros(options.num_prototypes, dtype=np.int64)
        self.idle = np.zeros(options.num_prototypes, dtype=np.int64)  # steps without separation
        self.active = options.recruit_start or options.num_prototypes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self._rng.integers(2**31)))
            self.model = Prototypes(options, shape, **view).to(device)
        self.optimizer = torch.optim.AdamW(
            [p for p in self.model.parameters() if p.requires_grad],
            lr=options.lr,
            eps=ADAM_EPS,
            weight_decay=options.weight_decay,
        )
        self.unseen_separation = np.full(options.num_prototypes, np.nan)

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    # --- memories -----------------------------------------------------------------------------

    def add(self, won: Sequence[Episode], lost: Sequence[Episode]) -> None:
        """Take in the chosen successes and failures of a batch."""
        if not self.options.learn:
            return
        won, lost = [e.kept(outputs=False) for e in won], [e.kept(outputs=False) for e in lost]
        if self.options.criterion == "memory":
            self._note_unseen(won, lost)
        else:
            won, lost = self.unseen_successes.offer(won), self.unseen_failures.offer(lost)
        self.successes.extend(won)
        self.failures.extend(lost)

    def _failure_memory(self, capacity: int) -> EpisodeMemory:
        if self.options.failure_memory == "reservoir":
            return Reservoir(capacity, self._rng)
        return EpisodeMemory(capacity)

    @property
    def _memories(self) -> tuple[EpisodeMemory, ...]:
        return self.successes, self.failures, self.unseen_successes, self.unseen_failures

    @property
    def seen(self) -> tuple[int, int]:
        """Successes and failures ever taken in."""
        if self.options.criterion == "memory":
            return self.successes.seen, self.failures.seen
        return self.unseen_successes.seen, self.unseen_failures.seen

    @property
    def learning(self) -> bool:
        """Whether the memories hold enough to learn from."""
        return len(self.successes) >= self.options.successes_needed and len(self.failures) > 0

    # --- learning -----------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """The contrastive steps of one iteration, then freezing and recruiting. Returns metrics."""
        metrics: dict[str, Any] = {}
        if self.learning and self.options.learn:
            self._recruit()  # before the steps: a new prototype must not pay untrained
            for turn in range(self.options.steps_per_iteration):
                metrics = _merge(metrics, self._gradient_step(turn))
                self._freeze()
            if self.options.criterion == "unseen":
                self._judge_on_unseen()
                self._freeze()
            self._restart()
            self.iterations += 1
        return metrics | self._counts()

    def _gradient_step(self, turn: int) -> dict[str, Any]:
        """One contrastive step: all live prototypes, and the frozen ones whose turn it is."""
        o = self.options
        live = Contrast(
            tuple(i for i in range(self.active) if i not in self.exemplars),
            draw(self.successes, o.memory_batch, self._rng),
            draw(self.failures, o.failures_drawn, self._rng),
        )
        frozen = [
            Contrast(
                (i,),
                draw(e.successes, o.memory_batch, self._rng),
                draw(e.failures, o.failures_drawn, self._rng),
            )
            for i, e in self.exemplars.items()
            if i % o.steps_per_iteration == turn or not o.frozen_in_turn
        ]
        if not live.prototypes and not frozen:
            return {"separation": {}}
        parts = contrastive_loss(self.model, o, self.active, live, frozen)
        self.optimizer.zero_grad(set_to_none=True)
        parts.total.backward()
        self.optimizer.step()

        gap = np.full(o.num_prototypes, np.nan)
        for i, won in parts.success_best.items():
            lost = parts.failure_best[i]
            gap[i] = float(L.separation(won[None], lost[None]))
            self.idle[i] = 0 if gap[i] > NOTHING else self.idle[i] + 1
            if o.criterion == "memory":
                reached = bool(L.meets_criterion(won[None], lost[None], o.threshold))
                self.streak[i] = self.streak[i] + 1 if reached else 0
        return {
            "loss": float(parts.total.detach()),
            "loss_success": float(parts.success.detach()),
            "loss_failure": float(parts.failure.detach()),
            "loss_diversity": float(parts.diversity.detach()),
            "separation": _by_prototype(gap),
        }

    def _judge_on_unseen(self) -> None:
        """Judge the prototypes on held-out episodes; an iteration counts all of its steps."""
        o = self.options
        if len(self.unseen_successes) < o.unseen_successes or not len(self.unseen_failures):
            return
        everyone = range(self.active)
        won = best_matches(self.model, everyone, tuple(self.unseen_successes), o.top_k)
        lost = best_matches(self.model, everyone, tuple(self.unseen_failures), o.top_k)
        lost = L.least_matching(lost, o.failure_share)
        gap = L.separation(won, lost).cpu().numpy()
        # A critical step is in every success: one held-out success without a match refutes it,
        # unless some are to be forgiven.
        everywhere = (won > o.threshold).double().mean(dim=-1).cpu().numpy() >= o.unseen_share
        reached = (gap > o.unseen_threshold) & everywhere
        grown = self.streak[: self.active] + o.steps_per_iteration
        self.streak[: self.active] = np.where(reached, grown, 0)
        self.unseen_separation[: self.active] = gap

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
        exemplars = None
        for i in np.flatnonzero((self.streak >= self.options.freeze_after) & ~self.met):
            if self.options.freeze_distinct and self._found_already(int(i)):
                continue
            self.met[i] = True
            if self.options.freeze:
                exemplars = exemplars or Exemplars(tuple(self.successes), tuple(self.failures))
                self.exemplars[int(i)] = exemplars

    def _found_already(self, i: int) -> bool:
        """Whether a prototype that has met the criterion matches the same steps as prototype i."""
        others = np.flatnonzero(self.met)
        if not len(others):
            return False
        successes = tuple(self.unseen_successes) or tuple(self.successes)
        shared = overlaps(self.model, [i, *others.tolist()], successes, self.options)
        return bool(shared[0, 1:].max() > SAME)

    def _restart(self) -> None:
        """Start live prototypes anew that have separated nothing for `restart_after` steps."""
        if self.options.restart_after is None:
            return
        stuck = (self.idle >= self.options.restart_after) & ~self.met
        for i in np.flatnonzero(stuck[: self.active]):
            generator = torch.Generator().manual_seed(int(self._rng.integers(2**31)))
            for parameter in self.model.redraw(int(i), generator):
                for moment in ("exp_avg", "exp_avg_sq"):
                    if moment in self.optimizer.state.get(parameter, {}):
                        self.optimizer.state[parameter][moment][i] = 0.0
            self.idle[i] = self.streak[i] = 0

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
        return {
            "successes": len(self.successes),
            "failures": len(self.failures),
            "prototypes": self.active,
            "frozen": int(self.met.sum()),
            "unseen_separation": _by_prototype(self.unseen_separation),
        }

    def get_state(self) -> dict[str, Any]:
        """Everything needed to continue exactly, sharing nothing with the learner."""
        groups = list(self._memories)
        for e in self.exemplars.values():
            groups += [e.successes, e.failures]
        return {
            "options": self.options.to_dict(),
            "shape": self._shape,
            "view": dict(self._view),
            "model": _to_numpy(self.model.state_dict()),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "episodes": pack([tuple(g) for g in groups]),
            "seen": [memory.seen for memory in self._memories],
            "frozen": list(self.exemplars),
            "met": self.met.copy(),
            "streak": self.streak.copy(),
            "idle": self.idle.copy(),
            "active": self.active,
            "iterations": self.iterations,
            "unseen_separation": self.unseen_separation.copy(),
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
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        groups = unpack(state["episodes"])
        for memory, held, seen in zip(self._memories, groups, state["seen"], strict=False):
            memory.restore(held, seen)
        own = groups[len(self._memories) :]
        self.exemplars = {
            i: Exemplars(s, f) for i, s, f in zip(state["frozen"], own[::2], own[1::2], strict=True)
        }
        self.met, self.streak = state["met"].copy(), state["streak"].copy()
        self.idle = state["idle"].copy()
        self.active, self.iterations = state["active"], state["iterations"]
        self.unseen_separation = state["unseen_separation"].copy()
        self._rng.bit_generator.state = state["rng"]


def _merge(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The later step's metrics; of prototypes that it left out, the earlier one's."""
    return earlier | later | {"separation": earlier.get("separation", {}) | later["separation"]}


def _to_numpy(weights: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: w.detach().cpu().numpy().copy() for name, w in weights.items()}


def _by_prototype(values: np.ndarray) -> dict[str, float]:
    return {str(i): float(v) for i, v in enumerate(values) if not np.isnan(v)}
