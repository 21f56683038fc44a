"""Ports of this host, each held by one player at a time.

Many workers start players at the same moment, often told the same ``base_port``. Binding alone
does not keep them apart: ML-Agents binds with ``SO_REUSEPORT``, after which two workers share a
port and receive each other's frames. So a port is taken by locking a file, and stays taken while
its player is restarted. The lock belongs to the process: however it ends, the port is free again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
from pathlib import Path

from rllib_conspec.errors import OptionError, UserError

PORTS_TRIED = 1000
LAST_PORT = 65535


def lock_directory() -> Path:
    """A directory of this user alone, the same for all of the user's processes on this host."""
    path = Path(tempfile.gettempdir()) / f"rllib_conspec-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not mine or found.st_mode & 0o077:
        raise UserError(f"{path} must be a directory that belongs to you alone (mode 0700)")
    return path


class Port:
    """A port of this host; ``number`` is ours until ``release()``."""

    def __init__(self, number: int, file: int, path: Path):
        self.number = number
        self._file: int | None = file
        self._path = path
        self._owner = os.getpid()

    def release(self) -> None:
        """Give the port back; a forked copy of the owner cannot."""
        if self._file is None:
            return
        file, self._file = self._file, None
        if self._owner == os.getpid():
            self._path.unlink(missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def take(base_port: int) -> Port:
    """The first free port from ``base_port`` on."""
    directory = lock_directory()
    last = min(base_port + PORTS_TRIED - 1, LAST_PORT)
    for number in range(base_port, last + 1):
        port = _lock(number, directory / f"port-{number}")
        if port is None:
            continue
        if _is_free(number):
            return port
        port.release()
    raise OptionError("base_port", f"no free port from {base_port} to {last}")


def _lock(number: int, path: Path) -> Port | None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between open and lock the last holder may have removed the file: then this is a lock on
        # nothing that others could see.
        if os.fstat(file).st_ino == os.stat(path).st_ino:
            return Port(number, file, path)
    except OSError:  # locked by another, or removed
        pass
    os.close(file)
    return None


def _is_free(number: int) -> bool:
    """Whether nobody listens on the port, by either name of the loopback interface."""
    families = [(socket.AF_INET, "127.0.0.1")]
    if has_ipv6():
        families.append((socket.AF_INET6, "::1"))
    for family, host in families:
        with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
            # Only the remains of a closed connection may be overlooked, never a listener.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
                probe.listen()
            except OSError:
                return False
    return True


def has_ipv6() -> bool:
    """Whether ``localhost`` can mean ``::1`` here."""
    try:
        with contextlib.closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
