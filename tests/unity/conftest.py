"""Players for the tests of this folder, and a look after each test at what it left behind."""

import gc
import os
import sys
import time
from pathlib import Path

import pytest

from rllib_conspec.unity.client import ports

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))


@pytest.fixture
def player(tmp_path):
    """Makes the executable of a player: ``player("keys", "--agents", "3")``."""

    def make(kind, *options):
        path = tmp_path / f"{kind}.x86_64"
        words = [sys.executable, str(FOLDER / "odd_player.py"), kind, *map(str, options)]
        path.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    """No player of this process and no lock of a port may outlive a test."""
    before = players_of_this_process(), locked_ports()
    yield
    gc.collect()
    deadline = time.monotonic() + 20
    while (after := (players_of_this_process(), locked_ports())) != before:
        assert time.monotonic() < deadline, after
        time.sleep(0.05)


def players_of_this_process():
    children = [p.read_text() for p in Path(f"/proc/{os.getpid()}/task").glob("*/children")]
    found = {}
    for pid in " ".join(children).split():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if "--mlagents-port" in command:
            found[int(pid)] = command
    return found


def locked_ports():
    """Ports whose lock this process holds."""
    directory = str(ports.lock_directory())
    opened = [os.readlink(p) for p in Path("/proc/self/fd").iterdir() if p.exists()]
    return [path for path in opened if path.startswith(directory)]
