"""A Decision Transformer (Chen et al., 2021): actions that fit a return that is asked for.

It reads up to K steps as a sequence of 3K tokens,

    R_1, s_1, a_1, R_2, s_2, a_2, …

in which R_t is the return that is still to come, s_t what is seen and a_t what is done. Each token
sees those before it, and the action of a step is predicted from the token of its state. To every
token of a step an embedding of the step's number in its episode is added.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rllib_conspec.networks.pieces import encode

TOKENS = 3  # of a step


class Block(nn.Module):
    """Attention to what came before, then two layers, each on normalised input and added to it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look, self.gather = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, L, width] → the same."""
        look = self.look(self.before(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = look.movedim(-2, 1).unbind(-2)  # each [B, heads, L, width / heads]
        lost = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=lost)
        x = x + F.dropout(self.gather(seen.movedim(1, -2).flatten(-2)), lost, self.training)
        return x + self.think(self.between(x))


class DecisionTransformer(nn.Module):
    """Returns, observations and actions of steps → logits of the action at each of them."""

    def __init__(
        self,
        encoder: nn.Module,
        num_actions: int,
        *,
        width: int,
        longest: int,
        blocks: int,
        heads: int,
        dropout: float,
    ) -> None:
        """`encoder` gives `width` features; `longest` is the number of steps of an episode."""
        super().__init__()
        self.longest = longest
        self.returns = nn.Linear(1, width)
        self.actions = nn.Embedding(num_actions, width)
        self.steps = nn.Embedding(longest, width)
        self.begin = nn.Sequential(nn.LayerNorm(width), nn.Dropout(dropout))
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(blocks))
        self.end = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_actions)
        self.apply(_initialise)
        self.encoder = encoder  # afterwards: it has its own initialisation

    def forward(self, returns: Tensor, observations: Tensor, actions: Tensor, steps: Tensor):
        """returns [B, K], observations [B, K, *shape], actions and numbers of the steps, int
        [B, K] → logits [B, K, A].

        Windows that are shorter than K have their steps first: what follows is seen by none of
        them, whatever it is. Nor does a step see its own action.
        """
        batch = returns.shape[:2]
        seen = encode(self.encoder, observations.flatten(0, 1)).unflatten(0, batch)
        tokens = torch.stack([self.returns(returns[..., None]), seen, self.actions(actions)], dim=2)
        tokens = tokens + self.steps(steps.clamp(max=self.longest - 1))[:, :, None]
        x = self.begin(tokens.flatten(1, 2))
        for block in self.blocks:
            x = block(x)
        return self.head(self.end(x[:, 1::TOKENS]))  # of the states


def action_loss(logits: Tensor, actions: Tensor, mask: Tensor) -> Tensor:
    """Cross-entropy of the actions [B, K] that were taken, mean over the real steps."""
    return F.cross_entropy(logits[mask], actions[mask])


def _initialise(layer: nn.Module) -> None:
    """GPT's."""
    if isinstance(layer, nn.Linear | nn.Embedding) and not layer.weight.is_meta:
        nn.init.normal_(layer.weight, std=0.02)
    if isinstance(layer, nn.Linear) and not layer.bias.is_meta:
        nn.init.zeros_(layer.bias)
