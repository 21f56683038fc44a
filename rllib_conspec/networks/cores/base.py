"""The seam of a policy's memory, and the core that has none."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from rllib_conspec.options import Options

State = dict[str, Tensor]  # name → [B, …]
Outputs = dict[str, Tensor]  # name → [B, (T,) …]


class Core(nn.Module):
    """Turns an encoder's features into the policy's, one step or a whole sequence at a time.

    The rollout loop knows neither the shapes of a state nor what a core gives besides features: it
    keeps the one from step to step and hands on the other in `Episode.outputs`. This core passes
    features through.
    """

    Options = Options
    presets = {}
    # The features that come in are followed by the last action (one of n as n numbers) and the
    # environment's last reward; zeros at the first step of an episode.
    reads_last: ClassVar[bool] = False
    # Names of what `step` gives with every step. The policy adds its `values` to them.
    gives: ClassVar[tuple[str, ...]] = ()

    def __init__(self, inputs: int, dim: int, options: Any = None) -> None:
        super().__init__()
        self.dim = dim  # of the features that come out
        self.options = options

    def initial_state(self) -> State:
        """The state before the first step of one episode: name → […]. Empty: no memory."""
        return {}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        """One step of B episodes, without a graph: features [B, inputs] → features [B, dim], next
        state, and outputs to be kept with the episode, each [B, …].
        """
        return x, state, {}

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State, Outputs]:
        """Sequences [B, T, inputs] → features [B, T, dim], last state, and outputs for auxiliary
        losses, each [B, T, …], with a graph. Without memory [B, inputs] too.
        """
        return x, state, {}
