"""Ray's daemons in a process group of their own.

`timeout`, `kill %1` and batch systems signal whole process groups. Daemons that die of the same
SIGTERM as the command take away what it needs to save; the command alone must get it, and stops
them when it has saved.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator


@contextlib.contextmanager
def another_process_group() -> Iterator[None]:
    """Processes started inside belong to another group than this process does afterwards.

    A process can only be moved by itself or before its `exec`, so we go there, and come back. A
    session leader may not go anywhere: then nothing changes.
    """
    if os.getsid(0) == os.getpid():
        yield
        return
    before = os.getpgrp()
    # A group has the number of a process, and ours may be the one we are in: a child lends its own.
    lender = subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0)
    with lender:
        os.setpgid(0, lender.pid)
        try:
            yield
        finally:
            # Refused when all others of our old group have ended: then we stay.
            with contextlib.suppress(PermissionError):
                os.setpgid(0, before)
