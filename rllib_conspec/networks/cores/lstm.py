"""One step of an LSTM whose part that does not depend on its own past was computed before."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LSTMCell(nn.Module):
    """Gates i, f, o and candidate g of `units` from what is known of a whole sequence beforehand
    (`known`, one product for all steps) and what only the step before tells (`told`).
    """

    def __init__(self, known: int, told: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.known = nn.Linear(known, 4 * units)
        self.told = nn.Linear(told, 4 * units, bias=False)
        for weight in (self.known.weight, self.told.weight):
            if not weight.is_meta:
                nn.init.orthogonal_(weight)
        nn.init.zeros_(self.known.bias)
        with torch.no_grad():
            self.known.bias[units : 2 * units] = 1.0  # forgets nothing at first

    def forward(self, before: Tensor, told: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """`self.known` of this step [B, 4U], the rest [B, told], c [B, U] → h, c (each [B, U])."""
        arguments = torch.addmm(before, told, self.told.weight.T)
        i, f, o = arguments[:, : 3 * self.units].sigmoid().chunk(3, dim=-1)
        c = torch.addcmul(f * c, i, arguments[:, 3 * self.units :].tanh())
        return o * c.tanh(), c
