"""A GRU whose training on the CPU does not pay for an autograd node per step.

`torch.nn.GRU` records about ten small operations for each step of a sequence on the CPU, and its
backward pass adds up weight gradients step by step. Here the whole sequence is one autograd
function: the forward loop is four operations and a product, the backward loop three and a product,
and each weight gradient is one matrix product over all steps. Parameters and results are
`torch.nn.GRU`'s; on a GPU its own (cuDNN) code is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_conspec.networks.cores.base import Core, Outputs, State


class GRU(nn.GRU):
    """One batch-first layer: [B, T, inputs], [B, units] → outputs [B, T, units], last state [B,
    units].
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__(inputs, units, batch_first=True)
        for name, parameter in self.named_parameters():
            nn.init.orthogonal_(parameter) if "weight" in name else nn.init.zeros_(parameter)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        if x.is_cuda:
            outputs, last = super().forward(x, state.unsqueeze(0))
            return outputs, last[0]
        inputs = F.linear(x.transpose(0, 1), self.weight_ih_l0, self.bias_ih_l0)
        outputs = _Sequence.apply(inputs, state, self.weight_hh_l0, self.bias_hh_l0)
        return outputs.transpose(0, 1), outputs[-1]

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """One step without a graph: [B, inputs], [B, units] → next state [B, units]."""
        inputs = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        return _step(inputs, state, self.weight_hh_l0, self.bias_hh_l0)[-1]


class GRUCore(Core):
    """A GRU as the policy's memory (the paper's, for keys and Montezuma's Revenge)."""

    def __init__(self, inputs: int, dim: int, options: Any = None) -> None:
        super().__init__(inputs, dim, options)
        self.gru = GRU(inputs, dim)

    def initial_state(self) -> State:
        return {"h": torch.zeros(self.dim)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        h = self.gru.step(x, state["h"])
        return h, {"h": h}, {}

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        features, last = self.gru(x, state["h"])
        return features, {"h": last}, {}


def _step(inputs: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Gates r, z [B, 2U], hidden part of the candidate, candidate n, next state (each [B, U])."""
    units = h.shape[-1]
    hidden = torch.addmm(bias, h, weight.T)
    gates = torch.add(inputs[:, : 2 * units], hidden[:, : 2 * units]).sigmoid_()
    n = torch.addcmul(inputs[:, 2 * units :], gates[:, :units], hidden[:, 2 * units :]).tanh_()
    return gates, hidden[:, 2 * units :], n, torch.lerp(n, h, gates[:, units:])


class _Sequence(torch.autograd.Function):
    """All steps: inputs [T, B, 3U], already times their weights, h0 [B, U] → h [T, B, U]."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, h0: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        steps, h = [], h0
        for x in inputs.unbind(0):
            steps.append(_step(x, h, weight, bias))
            h = steps[-1][-1]
        gates, hidden, n, states = (torch.stack(part) for part in zip(*steps, strict=True))
        ctx.save_for_backward(gates, hidden, n, states, h0, weight)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        gates, hidden, n, states, h0, weight = ctx.saved_tensors
        r, z = gates.chunk(2, dim=-1)
        before = torch.cat([h0.unsqueeze(0), states[:-1]])
        # dL/d(a gate's argument) is dL/dh times a factor known beforehand, for all steps at once.
        candidate = (1 - z) * (1 - n * n)
        factors = torch.stack(
            [candidate * hidden * r * (1 - r), (before - n) * z * (1 - z), candidate * r], dim=2
        )  # [T, B, 3, U]
        d_hidden, d_states = torch.empty_like(factors), torch.empty_like(states)
        d_h = torch.zeros_like(h0)
        for t in range(len(grad) - 1, -1, -1):
            d_h = torch.add(d_h, grad[t], out=d_states[t])
            d_arguments = torch.mul(d_h.unsqueeze(1), factors[t], out=d_hidden[t])
            d_h = torch.addmm(d_h * z[t], d_arguments.flatten(1), weight)
        d_inputs = torch.cat([d_hidden[:, :, :2].flatten(2), d_states * candidate], dim=-1)
        d_hidden = d_hidden.flatten(2).flatten(0, 1)
        return d_inputs, d_h, d_hidden.T @ before.flatten(0, 1), d_hidden.sum(0)
