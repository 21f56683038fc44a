"""Pieces of a product side by side, on cores that nobody needs meanwhile.

Torch's own threads wait for each other by spinning: where another process has the second core, a
product of a millisecond takes many. These sleep until their piece is there. And what a piece is
depends on its size alone, so that a result is the same to the last digit on any number of cores.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_cores = contextvars.ContextVar("cores", default=1)


@contextmanager
def cores_at_hand(count: int) -> Iterator[None]:
    """Within it, pieces may be computed on so many cores."""
    token = _cores.set(count)
    try:
        yield
    finally:
        _cores.reset(token)


def side_by_side(function: Callable[..., Any], *pieces: Sequence[Any]) -> list[Any]:
    """`map`, in its order. The last piece is this thread's own; with a graph or without, as here.

    Torch's own threads go first: where it has several, they share the pieces one after the other.
    """
    *others, own = zip(*pieces, strict=True)
    threads = min(_cores.get() - 1, len(others)) if torch.get_num_threads() == 1 else 0
    if threads <= 0:
        return [function(*piece) for piece in (*others, own)]
    graph = torch.is_grad_enabled()

    def computed(piece: tuple[Any, ...]) -> Any:
        with torch.set_grad_enabled(graph):
            return function(*piece)

    waiting = [_pool(threads).submit(computed, piece) for piece in others]
    last = function(*own)
    # What no thread has begun yet, this one does: it has nothing else to do.
    found = [computed(p) if w.cancel() else w for w, p in zip(waiting, others, strict=True)]
    return [f.result() if f is w else f for f, w in zip(found, waiting, strict=True)] + [last]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="side by side")


def with_graph(
    function: Callable[[Any], Tensor],
    pieces: Sequence[Any],
    parameters: Sequence[Tensor],
    dim: int = 0,
) -> Tensor:
    """Outputs of all pieces, joined along `dim`; the backward pass goes through the pieces side by
    side, too. `parameters` are all that the gradient is to reach.
    """
    return _Pieces.apply(function, pieces, dim, *parameters)


class _Pieces(torch.autograd.Function):
    """Each piece has a graph of its own, down to the parameters."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[[Any], Tensor], pieces: Sequence[Any], dim: int, *own: Tensor
    ) -> Tensor:
        with torch.enable_grad():
            ctx.outputs = side_by_side(function, pieces)
        ctx.dim, ctx.parameters = dim, own
        return torch.cat([output.detach() for output in ctx.outputs], dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        def behind(output: Tensor, part: Tensor) -> tuple[Tensor | None, ...]:
            return torch.autograd.grad(output, ctx.parameters, part, allow_unused=True)

        parts = gradient.split([output.shape[ctx.dim] for output in ctx.outputs], ctx.dim)
        found = side_by_side(behind, ctx.outputs, parts)
        return None, None, None, *(_sum(of_one) for of_one in zip(*found, strict=True))


def _sum(gradients: Sequence[Tensor | None]) -> Tensor | None:
    """In their order; None where no piece has any."""
    some = [gradient for gradient in gradients if gradient is not None]
    return sum(some[1:], some[0]) if some else None
