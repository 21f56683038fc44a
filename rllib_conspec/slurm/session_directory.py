"""The directory of one Ray on a node: closed to others, and gone when its job is.

A job that is killed cannot clean up after itself; the next one of the same cluster on that node
does it. It knows by a lock that nobody lives in a directory any more: the kernel releases it when
the process that holds it ends, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

# Short: the path of a socket may have 107 characters, and most of them are Ray's.
PREFIX = "ray-"


class SessionDirectory:
    """A new directory below `parent` for a node of `cluster`; locked while this process lives."""

    def __init__(self, parent: str | os.PathLike, cluster: str):
        sweep(parent, cluster)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        partial = self.path / ".owner"
        self._owner = partial.open("w")
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        self._owner.write(cluster)
        self._owner.flush()
        partial.rename(self.path / "owner")  # nobody ever sees it unlocked while we live

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._owner.close()


def sweep(parent: str | os.PathLike, cluster: str) -> None:
    """Remove what dead jobs of this user's cluster have left below `parent`."""
    for path in Path(parent).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else's, or being removed just now
            if _abandoned(path, cluster):
                shutil.rmtree(path, ignore_errors=True)


def _abandoned(path: Path, cluster: str) -> bool:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    with (path / "owner").open() as owner:
        if owner.read() != cluster:
            return False
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
