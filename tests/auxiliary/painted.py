"""Pictures, the colours of OrangeTree, and a policy that looks at pictures."""

import torch
from gymnasium import spaces
from torch import nn

from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.networks.encoders import build_encoder


def pictures(*shape, dtype=torch.uint8):
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


# What OrangeTree is trained on: objects, wall and floor.
OBJECTS = torch.tensor(
    [(225, 30, 200), (30, 45, 235), (220, 30, 30), (30, 190, 50), (245, 225, 30), (255, 190, 150)]
)
ROOM = torch.tensor([(150, 150, 150), (70, 105, 165)])


class Policy(nn.Module):
    """Logits of three actions and a value, from pictures of 5 × 5."""

    action_space = spaces.Discrete(3)

    def __init__(self, dim=8, **view) -> None:
        super().__init__()
        shape = (3, 5, 5) if view.get("channels") == "first" else (5, 5, 3)
        self.encoder = build_encoder("conv", shape, dim, **view)
        self.logits, self.value = nn.Linear(dim, 3), nn.Linear(dim, 1)

    def forward(self, observations, rows=None, by=None):
        if by is not None:
            return by(observations)
        z = self.encoder(observations.flatten(0, -4)).unflatten(0, observations.shape[:-3])
        return self.logits(z), self.value(z).squeeze(-1)

    def batch(self, observations, mask=None) -> PolicyBatch:
        inputs, values = self(observations)
        return PolicyBatch(
            observations, mask, inputs, values, forward=self.forward, kl=kl, policy=self
        )


def kl(before, after):
    distributions = (torch.distributions.Categorical(logits=x) for x in (before, after))
    return torch.distributions.kl_divergence(*distributions)
