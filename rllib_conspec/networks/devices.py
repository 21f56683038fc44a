"""The way to a learner's device, and how much went it.

What is counted is what a device of its own has to be sent: also where the device is the CPU, and
nothing is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

_sent = 0  # bytes, by this process


def to_device(array: np.ndarray, device: torch.device | str) -> Tensor:
    """The array as a tensor on this device."""
    global _sent
    _sent += array.nbytes
    return torch.from_numpy(array).to(device)


def copied(state: Any) -> Any:
    """The state of a network or an optimizer, sharing nothing with it. On the CPU: it can be read
    where there is no such device.
    """
    return tree_map_only(Tensor, lambda t: t.detach().cpu().clone(), state)


def bytes_sent() -> int:
    """By `to_device`, in this process, so far."""
    return _sent
