"""The seam of a policy's memory, and the core that has none."""

from __future__ import annotations

from torch import Tensor, nn

from rllib_conspec.options import Options

State = dict[str, Tensor]  # name → [B, …]


class Core(nn.Module):
    """Turns an encoder's features into the policy's, one step or a whole sequence at a time.

    The rollout loop knows neither the shapes of a state nor what a core gives besides features: it
    keeps the one from step to step and hands on the other in `Episode.outputs`. This core passes
    features through.
    """

    Options = Options
    presets = {}

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.dim = dim  # of the features that come out

    def initial_state(self) -> State:
        """The state before the first step of one episode: name → […]. Empty: no memory."""
        return {}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State, dict[str, Tensor]]:
        """One step of B episodes, without a graph: features [B, inputs] → features [B, dim], next
        state, and outputs to be kept with the episode, each [B, …].
        """
        return x, state, {}

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Sequences [B, T, inputs] → features [B, T, dim], last state. Without memory [B, inputs]
        too.
        """
        return x, state
