"""Refuse networks that cannot fit into this machine's memory, before anything is built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray._common.utils import get_system_memory

from rllib_conspec.errors import OptionError

# Weights, gradients and the two moments of Adam, 4 bytes each.
BYTES_PER_PARAMETER = 16


def check_memory(parameters: Mapping[str, float]) -> None:
    """`parameters`: how many each network has, by the option that its size is due to."""
    needed = BYTES_PER_PARAMETER * sum(parameters.values())
    free = free_bytes()
    if needed > free:
        option = max(parameters, key=parameters.__getitem__)
        about = f"about {in_bytes(needed)}" if needed < math.inf else "more than can be counted"
        raise OptionError(
            option, f"the networks need {about}, this machine has {in_bytes(free)} free."
        )


def free_bytes() -> int:
    """Memory that programs can still have; no more than a container or a job may use at all."""
    import psutil  # Ray brings it along, and makes it importable

    return min(psutil.virtual_memory().available, get_system_memory())


def largest(section: str, options: Mapping[str, Any]) -> str:
    """The path of the option with the largest number in it, or of the section if none has one."""
    sizes = {key: _largest_number(value) for key, value in options.items()}
    key = max(sizes, key=sizes.__getitem__, default=None)
    return f"{section}.{key}" if key is not None and sizes[key] > 0 else section


def _largest_number(value: Any) -> float:
    if isinstance(value, (list, tuple)):
        return max(map(_largest_number, value), default=0)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def in_bytes(number: float) -> str:
    """'37 TB', '1.5 GB'."""
    for unit in ("bytes", "KB", "MB", "GB", "TB", "PB"):
        if number < 1000 or unit == "PB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"
