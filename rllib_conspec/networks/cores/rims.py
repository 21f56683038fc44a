"""Recurrent independent mechanisms (arXiv 1909.10893): blocks that wake up for what concerns them.

The memory is K blocks with dynamics of their own. At every step each asks whether it wants what is
seen, x, or nothing (a row of zeros); the k blocks that want it most are active:

    a_i  = softmax over {x, nothing} of (q_i · key) / √d     q_i made of h_i; nothing has key 0
    h̃_i  = GRU_i(a_i · value of x, h_i)                      i active
    h'_i = h̃_i + communication of i with all blocks          i active
    h'_i = h_i                                               others keep their state

Active blocks read from all blocks, by attention with several heads. The key of nothing being 0, a_i
for x is a sigmoid; and as all blocks have the same x, what a GRU makes of its value is known for
all steps of a sequence beforehand, up to the factor a_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.cores.base import Core, Outputs, State
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class RIMsOptions(Options):
    """The defaults are the paper's, but for the width of values (400)."""

    blocks: int = option(6, "parts of the memory, each core_dim / blocks wide", min=1)
    active: int = option(4, "blocks that are updated at a step", min=1)
    key_dim: int = option(64, "width of the queries and keys of what is seen", min=1)
    value_dim: int = option(64, "width of the value of what is seen (paper: 400)", min=1)
    heads: int = option(4, "of the attention of blocks to each other", min=1)
    head_dim: int = option(32, "width of each of these heads", min=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active > self.blocks:
            raise OptionError("active", f"must be at most blocks ({self.blocks}).")


class EachItsOwn(nn.Module):
    """A linear layer for every block: [B, K, inputs] → [B, K, outputs]."""

    def __init__(self, blocks: int, inputs: int, outputs: int, bias: bool = False) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(blocks, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(blocks, outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        out = torch.bmm(x.transpose(0, 1), self.weight).transpose(0, 1)
        return out if self.bias is None else out + self.bias


class RIMsCore(Core):
    """Blocks of memory of which only those are updated that what is seen concerns (RIMs)."""

    Options = RIMsOptions

    def __init__(self, inputs: int, dim: int, options: Any = None) -> None:
        o = options or RIMsOptions()
        super().__init__(inputs, dim, o)
        if dim % o.blocks:
            near = max(1, round(dim / o.blocks)) * o.blocks
            raise OptionError(
                "core_dim", f"must be a multiple of blocks ({o.blocks}), such as {near}."
            )
        self.units = dim // o.blocks
        self.key = nn.Linear(inputs, o.key_dim, bias=False)
        self.value = nn.Linear(inputs, o.value_dim, bias=False)
        self.query = EachItsOwn(o.blocks, self.units, o.key_dim)
        self.told = EachItsOwn(o.blocks, o.value_dim, 3 * self.units)
        self.own = EachItsOwn(o.blocks, self.units, 3 * self.units, bias=True)
        self.talk = EachItsOwn(o.blocks, self.units, 3 * o.heads * o.head_dim)
        self.heard = EachItsOwn(o.blocks, o.heads * o.head_dim, self.units)

    def initial_state(self) -> State:
        return {"blocks": torch.zeros(self.options.blocks, self.units)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        h = self._next(self.key(x), self._told(self.value(x)), state["blocks"])
        return h.flatten(1), {"blocks": h}, {}

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        h, steps = state["blocks"], []
        told = self._told(self.value(x).flatten(0, 1)).unflatten(0, x.shape[:2])
        for key, own in zip(self.key(x).unbind(1), told.unbind(1), strict=True):
            h = self._next(key, own, h)
            steps.append(h)
        return torch.stack(steps, dim=1).flatten(2), {"blocks": h}, {}

    def _told(self, value: Tensor) -> Tensor:
        """What the GRUs make of a value [N, value_dim]: [N, K, 3U]."""
        return self.told(value.unsqueeze(1).expand(-1, self.options.blocks, -1))

    def _next(self, key: Tensor, told: Tensor, h: Tensor) -> Tensor:
        """Blocks [B, K, U] after a step with this key [B, key_dim] and `_told` [B, K, 3U]."""
        o, units = self.options, self.units
        wants = torch.bmm(self.query(h), key.unsqueeze(-1)) / math.sqrt(o.key_dim)  # [B, K, 1]
        chosen = wants.topk(o.active, dim=1).indices
        active = torch.zeros_like(wants, dtype=torch.bool).scatter(1, chosen, True)
        told, own = wants.sigmoid() * told, self.own(h)
        r, u = (told[..., : 2 * units] + own[..., : 2 * units]).sigmoid().chunk(2, dim=-1)
        new = torch.addcmul(told[..., 2 * units :], r, own[..., 2 * units :]).tanh()
        new = torch.where(active, torch.lerp(new, h, u), h)
        return torch.where(active, new + self._communicate(new), h)

    def _communicate(self, h: Tensor) -> Tensor:
        """What each block reads from all [B, K, U]."""
        o = self.options
        parts = self.talk(h).unflatten(-1, (3, o.heads, o.head_dim)).permute(2, 0, 3, 1, 4)
        query, key, value = parts  # each [B, heads, K, head_dim]
        weights = (query @ key.mT / math.sqrt(o.head_dim)).softmax(dim=-1)
        return self.heard((weights @ value).transpose(1, 2).flatten(2))
