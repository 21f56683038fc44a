"""Scores: how well an observation matches a prototype, s = cos(h_i, g_theta(f_W(O)))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rllib_conspec.networks import pieces
from rllib_conspec.networks.devices import to_device
from rllib_conspec.networks.encoders import build_encoder
from rllib_conspec.networks.side_by_side import side_by_side, with_graph
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.distinct import DistinctFrames

# Numbers in the projections of some frames by some prototypes up to which the prototypes' products
# are taken together: so small, their fixed costs are most of it.
SMALL = 500_000
# Frames from which halves of them are worth a thread each.
MANY = 64
SHORTEST = 1e-12  # length of a projection: none has no direction, and scores 0


class Cosines(torch.autograd.Function):
    """Projections [h, N, width] and directions of length 1 [h, width] → cosines [h, N].

    Autograd would go through the projections a dozen times, and through products with a single
    column, which take five times as long as adding up by hand.
    """

    @staticmethod
    def forward(ctx: Any, out: Tensor, unit: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(out, dim=-1).clamp_min_(SHORTEST)
        s = (out * unit[:, None]).sum(dim=-1) / length
        ctx.save_for_backward(out, unit, length, s)
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """∂s/∂out = (unit − s · out / length) / length, ∂s/∂unit = out / length."""
        out, unit, length, s = ctx.saved_tensors
        per_length = gradient / length
        # A length that was raised to the shortest does not depend on the projection.
        along = (per_length * s / length).masked_fill_(length <= SHORTEST, 0.0)
        weighted = per_length[..., None] * out
        to_unit = weighted.sum(dim=1)
        to_out = torch.mul(out, -along[..., None], out=weighted)  # in memory that is there
        return to_out.addcmul_(per_length[..., None], unit[:, None]), to_unit


class Prototypes(nn.Module):
    """Encoder f_W, projections g_theta and prototype vectors h_1..h_H."""

    def __init__(self, options: ConSpecOptions, shape: Sequence[int], **view: Any) -> None:
        """`view` says how observations are to be read, as `build_encoder` takes it."""
        super().__init__()
        count, width = options.num_prototypes, options.projection_dim
        self.relu_after_both = options.form == "code"
        self.shared = options.form == "paper"
        self.encoder = build_encoder(options.encoder, shape, options.encoder_dim, **view)
        projections = 1 if self.shared else count
        self.layer1 = _uniform(projections, options.encoder_dim, width)
        self.layer2 = _uniform(projections, width, width)
        # The "stop-gradient" ablation leaves the vectors where they start.
        self.vectors = nn.Parameter(
            torch.randn(count, width), requires_grad=not options.stop_gradient
        )

    def encode(self, frames: Tensor) -> Tensor:
        """Observations [N, *shape] → features z [N, encoder_dim]."""
        return pieces.encode(self.encoder, frames)

    @torch.no_grad()
    def encode_all(self, distinct: DistinctFrames) -> Tensor:
        """Features z [N, encoder_dim] of all these frames, without a graph; they are read, and
        brought to the device, a piece at a time.
        """
        device = self.vectors.device
        some = distinct.pieces(pieces.piece_size(distinct.shape, device))
        return torch.cat([self.encoder(to_device(p, device)) for p in some])

    def scores(self, z: Tensor, which: Tensor) -> Tensor:
        """Features z [N, D] → s [len(which), N], cosines with the prototypes `which` (indices)."""
        return self._scores(z, which)

    def _apart(self) -> list[tuple[Tensor, ...]]:
        """Every prototype's own parameters, [1, …] each (none where the projection is shared).

        Taken apart in one operation: indexing them one by one would make the backward pass add up
        as many gradients of full size as there are prototypes.
        """
        own = [] if self.shared else [self.layer1, self.layer2, self.vectors]
        return list(zip(*(parameter.split(1) for parameter in own), strict=True))

    def _scores(
        self, z: Tensor, which: Tensor, apart: list[tuple[Tensor, ...]] | None = None
    ) -> Tensor:
        if self.shared:
            return self._cosines(z, self.layer1, self.layer2, self.vectors[which])
        asked = which.tolist()
        small = len(asked) * len(z) * self.vectors.shape[1] <= SMALL
        if small and asked == list(range(len(self.vectors))):  # nothing is to be put together
            return self._cosines(z, self.layer1, self.layer2, self.vectors)
        apart = apart or self._apart()
        own = [apart[i] for i in asked]
        if small:
            own = [tuple(torch.cat(each) for each in zip(*own, strict=True))]
        return torch.cat(
            side_by_side(lambda *some: self._cosines(z, *some), *zip(*own, strict=True))
        )

    def _cosines(self, z: Tensor, layer1: Tensor, layer2: Tensor, vectors: Tensor) -> Tensor:
        """cos(h_i, g_theta(z)) of h prototypes, each with layers of its own or all with the same:
        z [N, D], layers [h or 1, …], vectors [h, width] → [h, N].
        """
        hidden = (z @ layer1.transpose(0, 1).flatten(1)).relu_()  # all first layers at once
        out = hidden.unflatten(1, (len(layer1), -1)).transpose(0, 1) @ layer2
        out = out.relu_() if self.relu_after_both else out  # [h or 1, N, width]
        unit = F.normalize(vectors, dim=-1)
        if self.shared:
            return unit @ out[0].T / torch.linalg.vector_norm(out, dim=-1).clamp_min(SHORTEST)
        return Cosines.apply(out, unit)

    def weights_of(self, which: np.ndarray) -> dict[str, Tensor]:
        """State of a model that has only the prototypes `which`."""
        own = {"vectors"} if self.shared else {"vectors", "layer1", "layer2"}
        return {k: w[which] if k in own else w for k, w in self.state_dict().items()}

    def needed_scores_of(self, frames: Tensor, need: Tensor) -> Tensor:
        """`needed_scores` of observations [N, *shape], with a graph."""
        # What is too much for one graph is encoded in pieces already, and is not to be held twice.
        large = frames.numel() > pieces.WITH_GRAPH
        if frames.device.type != "cpu" or len(frames) < MANY or large:
            return self.needed_scores(self.encode(frames), need)
        half = [len(frames) // 2, len(frames) - len(frames) // 2]
        halves = list(zip(frames.split(half), need.split(half, dim=1), strict=True))
        learning = [p for p in self.parameters() if p.requires_grad]
        return with_graph(
            lambda piece: self.needed_scores(self.encode(piece[0]), piece[1]), halves, learning, 1
        )

    def needed_scores(self, z: Tensor, need: Tensor) -> Tensor:
        """s [H, N] where `need` [H, N] is true, 0 elsewhere. `need` is on the CPU, wherever z is:
        how much is computed depends on it, and nobody has to wait for a device to say so.

        Prototypes that need the same frames share one product; where most is needed, all do.
        """
        needed = int(need.sum())
        if 2 * needed > need.numel():
            s = self._scores(z, torch.arange(len(need)))
            return s if needed == need.numel() else s.masked_fill(~need.to(z.device), 0.0)
        apart = self._apart()
        s = z.new_zeros(need.shape)
        rows, group_of = torch.unique(need, dim=0, return_inverse=True)
        for g, row in enumerate(rows):
            frames = row.nonzero().squeeze(1)
            if len(frames):
                which = (group_of == g).nonzero().squeeze(1)
                found = self._scores(z[frames], which, apart)
                s = s.index_put((which[:, None], frames[None, :]), found)
        return s


def _uniform(count: int, fan_in: int, fan_out: int) -> nn.Parameter:
    """Weights of `count` linear layers without bias, initialised as torch initialises one."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(count, fan_in, fan_out).uniform_(-bound, bound))
