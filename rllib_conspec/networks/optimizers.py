"""Optimizers that go on from a checkpoint.

What an optimizer has found (moments, counts of steps) is continued; how it is set (learning rate,
weight decay) is said by the options of this run. A checkpoint has both, and its settings may be
those of another trial: population-based training copies checkpoints and changes options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch.optim import Optimizer


@contextmanager
def keeping_settings(optimizers: Iterable[Optimizer]) -> Iterator[None]:
    """Whatever state is loaded in the block, settings stay as they were."""
    held = [(one, [_settings(group) for group in one.param_groups]) for one in optimizers]
    yield
    for optimizer, groups in held:
        for group, settings in zip(optimizer.param_groups, groups, strict=True):
            group.update(settings)


def _settings(group: dict) -> dict:
    return {name: value for name, value in group.items() if name != "params"}
