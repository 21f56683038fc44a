"""Importing what a user names: `package.module`, installed or a file of the current directory."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType


def import_module(name: str) -> ModuleType:
    """`importlib.import_module`, which also finds what lies in the current directory.

    `python file.py` and `python -m` look there by themselves, a console script does not. The
    directory comes last, so that a file in it hides nothing that is installed, and it stays: the
    module may import its neighbours later on.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        here = os.getcwd()
        if error.name != name.partition(".")[0] or here in sys.path:
            raise
        sys.path.append(here)
        importlib.invalidate_caches()  # the file may be younger than Python's listing of the place
        return importlib.import_module(name)
