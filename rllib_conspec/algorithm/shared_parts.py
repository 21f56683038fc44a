"""Parts beside the policy that several learners train together.

torch's DistributedDataParallel, which RLlib wraps the policy in, knows only the policy. What else
learns with it has to begin equal and to be moved by the mean of all learners' gradients, too.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import distributed, nn


@torch.no_grad()
def begin_equal(parts: Iterable[nn.Module]) -> None:
    """Give every learner what the first one has."""
    for part in parts:
        for tensor in (*part.parameters(), *part.buffers()):
            distributed.broadcast(tensor, src=0)


@torch.no_grad()
def average_gradients(parts: Iterable[nn.Module]) -> None:
    """The mean over all learners, in place."""
    for part in parts:
        for parameter in part.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:  # others may have one, and wait for this learner's
                    parameter.grad = torch.zeros_like(parameter)
                distributed.all_reduce(parameter.grad)
                parameter.grad /= distributed.get_world_size()
