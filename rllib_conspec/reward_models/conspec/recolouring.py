"""Prototypes that have learned learn to match their critical steps in other colours, too.

The model has a teacher: itself, as it was when this began. Pictures of the memories, painted anew,
are to get the scores that the teacher gives them as they are. Contrastive steps on such pictures
find nothing (docs/orangetree.md); learning afterwards what is known already does.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rllib_conspec.networks.devices import copied
from rllib_conspec.networks.palette import repaint
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.view import Contrast, View

STEPS = 4  # gradient steps on one draw of episodes


class Recolouring:
    """Holds the teacher, and takes the steps."""

    def __init__(self, model: Prototypes, how_to_read: dict[str, Any]) -> None:
        self.model = model
        self._paint = {
            "brightest": float(how_to_read.get("observation_range", 255.0)),
            "channels": how_to_read.get("channels", "last"),
        }
        self.teacher: Prototypes | None = None

    def steps(
        self,
        optimizer: torch.optim.Optimizer,
        prototypes: Sequence[int],
        drawn: Contrast,
        rng: np.random.Generator,
    ) -> dict[str, float]:
        """Take steps for these prototypes on frames of these episodes. Returns metrics.

        Half of the frames are those that a prototype matches best in its episode, which decide what
        is paid; the others are any.
        """
        if self.teacher is None:
            self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        which = tuple(prototypes)
        view = View(self.teacher, [Contrast(which, drawn.successes, drawn.failures)])
        asked = [(which, drawn.successes), (which, drawn.failures)]
        target = view.scores_without_graph(asked)[list(which)]  # [h, N]
        best = torch.zeros(target.shape[1], dtype=torch.bool, device=target.device)
        for _, episodes in asked:
            index, mask = view.layout(episodes)
            found = L.among_best(target[:, index], mask, 1).any(dim=0)
            best[index[found]] = True
        best = best.nonzero().squeeze(1)
        chosen, changes = torch.tensor(which, device=target.device), []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            for _ in range(STEPS):
                other = torch.randint(target.shape[1], (len(best),)).to(best)
                at = torch.cat([best, other])
                seen = view.at(at)
                both = torch.cat([seen, repaint(seen, **self._paint)])
                s = self.model.scores(self.model.encode(both), chosen)
                change = (s - target[:, at].repeat(1, 2)).square().mean()
                optimizer.zero_grad(set_to_none=True)
                change.backward()
                optimizer.step()
                changes.append(change.detach())
        return {"recolour_loss": float(torch.stack(changes).mean())}

    def get_state(self) -> dict[str, Any]:
        return {} if self.teacher is None else copied(dict(self.teacher.state_dict()))

    def set_state(self, state: dict[str, Any]) -> None:
        self.teacher = None
        if state:
            self.teacher = copy.deepcopy(self.model).requires_grad_(False)
            self.teacher.load_state_dict(state)
