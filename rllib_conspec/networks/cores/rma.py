"""RMA, the Reconstructive Memory Agent (arXiv 1810.06721), as a core.

What is seen is stored as it is, every step of an episode in a row of a memory, and a controller
looks it up by content when it is of use:

    z_t = MLP(code of the observation, last action, last reward)
    h_t = two LSTMs on z_t and m_t−1; both get z_t and both are given out (skips)
    m_t = what H heads read by keys and strengths made of h_t, among z_0 … z_t−1
    out = tanh(W [z_t, h_t, m_t])

What z is worth storing for is taught by `auxiliary/reconstruct.py`. z depends on nothing but its
own step, so that those of a whole sequence, and with them the memory at every step of it, are known
before the controller runs; only what h_t and m_t take from each other goes step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_conspec.networks.cores.base import Core, Outputs, State
from rllib_conspec.networks.cores.lstm import LSTMCell
from rllib_conspec.networks.cores.recall import Read, numbers_in, read
from rllib_conspec.networks.encoders import orthogonal
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class RMAOptions(Options):
    """The paper's sizes are 400, 200, 256, 1000, 3 and 50."""

    hidden: int = option(128, "width of the layer before z (paper: 400)", min=1)
    width: int = option(64, "numbers in z, a row of the memory (paper: 200)", min=1)
    units: int = option(128, "of each of the controller's two LSTMs (paper: 256)", min=1)
    slots: int = option(
        320, "rows: steps of an episode that are remembered, the newest (paper: 1000)", min=1
    )
    heads: int = option(3, "rows that are looked for at a time", min=1)
    reads: int = option(50, "rows that a head reads, those most like its key", min=1)


class RMACore(Core):
    """A memory of all that was seen in an episode, read by content (RMA)."""

    Options = RMAOptions
    reads_last = True
    gives = ("read_strengths", "read_weights", "read_addresses")

    def __init__(self, inputs: int, dim: int, options: RMAOptions | None = None) -> None:
        o = options or RMAOptions()
        super().__init__(inputs, dim, o)
        self.store = nn.Sequential(
            orthogonal(nn.Linear(inputs, o.hidden)),
            nn.Tanh(),
            orthogonal(nn.Linear(o.hidden, o.width), gain=1.0),
        )
        found = o.heads * o.width
        self.first = LSTMCell(o.width, o.units + found, o.units)
        self.second = LSTMCell(o.width, 2 * o.units, o.units)
        self.ask = orthogonal(nn.Linear(2 * o.units, found + o.heads), gain=1.0)
        self.out = orthogonal(nn.Linear(o.width + 2 * o.units + found, dim))

    def initial_state(self) -> State:
        o = self.options
        units = {name: torch.zeros(o.units) for name in ("h1", "c1", "h2", "c2")}
        return units | {
            "m": torch.zeros(o.heads * o.width),
            "rows": torch.zeros(o.slots, o.width),
            # Steps of the episode so far; RLlib turns tensors without dimensions into numbers.
            "count": torch.zeros(1),
        }

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        rows, count = state["rows"], state["count"].squeeze(-1)
        z = self.store(x)
        numbers = numbers_in(count, self.options.slots)
        there = (numbers >= 0).to(rows)
        known = self.first.known(z), self.second.known(z)
        new, strengths, found = self._control(known, state, rows, F.normalize(rows, dim=-1), there)
        rows = rows.clone()  # who keeps states keeps the old one
        place = torch.remainder(count, self.options.slots).long()
        rows[torch.arange(len(rows), device=rows.device), place] = z
        features = self._features(z, new["h1"], new["h2"], new["m"])
        of_heads = numbers.unsqueeze(1).expand(-1, self.options.heads, -1)
        outputs = {
            "read_strengths": strengths,
            "read_weights": found.weights,
            "read_addresses": of_heads.gather(-1, found.places).clamp(min=0).int(),
        }
        return features, new | {"rows": rows, "count": state["count"] + 1}, outputs

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        slots, steps = self.options.slots, x.shape[1]
        z = self.store(x)
        rows, numbers = z, state["count"] + torch.arange(steps, device=x.device)
        if bool((state["count"] > 0).any()):  # a piece: what was stored before it
            rows = torch.cat([state["rows"], z], dim=1)
            numbers = torch.cat([numbers_in(state["count"].squeeze(-1), slots), numbers], dim=1)
        unit = F.normalize(rows, dim=-1)
        now = state["count"] + torch.arange(steps, device=x.device)  # [B, T]
        age = now.unsqueeze(-1) - numbers.unsqueeze(1)
        there = ((age > 0) & (age <= slots) & (numbers >= 0).unsqueeze(1)).to(z)
        known = zip(self.first.known(z).unbind(1), self.second.known(z).unbind(1), strict=True)
        new, seen = state, []
        for own, there_now in zip(known, there.unbind(1), strict=True):
            new, strengths, _ = self._control(own, new, rows, unit, there_now)
            seen.append((new["h1"], new["h2"], new["m"], strengths))
        h1, h2, m, strengths = (torch.stack(part, dim=1) for part in zip(*seen, strict=True))
        last = new | {"rows": self._kept(rows, numbers), "count": state["count"] + steps}
        return self._features(z, h1, h2, m), last, {"z": z, "read_strengths": strengths}

    def _control(
        self, known: tuple[Tensor, Tensor], state: State, rows: Tensor, unit: Tensor, there: Tensor
    ) -> tuple[State, Tensor, Read]:
        """One step of the controller: its next state, strengths [B, heads], what was read."""
        o = self.options
        told = torch.cat([state["h1"], state["m"]], dim=-1)
        h1, c1 = self.first(known[0], told, state["c1"])
        h2, c2 = self.second(known[1], torch.cat([h1, state["h2"]], dim=-1), state["c2"])
        asked = self.ask(torch.cat([h1, h2], dim=-1))
        keys = asked[:, : -o.heads].unflatten(-1, (o.heads, o.width))
        strengths = F.softplus(asked[:, -o.heads :])
        found = read(rows, unit, there, keys, strengths, min(o.reads, o.slots))
        new = {"h1": h1, "c1": c1, "h2": h2, "c2": c2, "m": found.found.flatten(1)}
        return new, strengths, found

    def _features(self, *parts: Tensor) -> Tensor:
        return self.out(torch.cat(parts, dim=-1)).tanh()

    def _kept(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """The slots after these rows [B, N, W], each of the step that `numbers` [B, N] says."""
        slots = self.options.slots
        kept = rows.new_zeros(len(rows), slots, rows.shape[-1])
        places = torch.remainder(numbers, slots).long()
        newest = (numbers >= 0) & (numbers > numbers[:, -1:] - slots)
        which = newest.nonzero(as_tuple=True)
        return kept.index_put((which[0], places[which]), rows[which])
