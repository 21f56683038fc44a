"""The built-in player: the one that is started where no build is named.

This package knows no task. Whoever has a player says here which module it is, by name, so that
nothing of it is imported before it runs in a process of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import rllib_conspec
from rllib_conspec.errors import OptionError

_module: str | None = None


def use(module: str) -> None:
    """``python -m module --agents N --observations png`` is the built-in player from now on."""
    global _module
    _module = module


def command(num_agents: int) -> list[str]:
    """The program and its arguments."""
    if _module is None:
        raise OptionError("file_name", "is needed: there is no built-in player")
    # Pictures as PNG: a quarter of the bytes.
    words = [sys.executable, "-m", _module, "--agents", str(num_agents)]
    return [*words, "--observations", "png"]


def environment() -> dict[str, str]:
    """Variables of its process."""
    variables = dict(os.environ)
    # Found as this process found it, also where the package is not installed.
    root = str(Path(rllib_conspec.__file__).parents[1])
    others = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = os.pathsep.join([root, others] if others else [root])
    variables["OMP_NUM_THREADS"] = "1"
    # Memory for messages is kept, not given back to the system after every one.
    variables["MALLOC_MMAP_THRESHOLD_"] = variables["MALLOC_TRIM_THRESHOLD_"] = "16777216"
    return variables
