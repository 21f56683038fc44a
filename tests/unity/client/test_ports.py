import os
import signal
import socket
import subprocess
import sys

import pytest

from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.unity.client import ports


@pytest.fixture
def base():
    """A port number with free ones after it."""
    port = ports.take(21000)
    port.release()
    return port.number


def test_two_that_want_the_same_port_get_different_ones(base):
    first, second = ports.take(base), ports.take(base)
    assert {first.number, second.number} == {base, base + 1}
    first.release()
    third = ports.take(base)
    assert third.number == base
    second.release()
    third.release()


def test_nothing_is_left_of_a_released_port(base):
    port = ports.take(base)
    file = ports.lock_directory() / f"port-{base}"
    assert file.exists()
    port.release()
    port.release()
    assert not file.exists()


@pytest.mark.parametrize("option", [None, "SO_REUSEPORT"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_port_on_which_a_stranger_listens_is_passed_by(base, host, option):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as stranger:
        if option:
            stranger.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
        stranger.bind((host, base))
        stranger.listen()
        port = ports.take(base)
        assert port.number == base + 1
        port.release()


def test_a_killed_process_gives_its_port_back(base):
    code = f"""
import time
from rllib_conspec.unity.client import ports
print(ports.take({base}).number, flush=True)
time.sleep(60)
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert int(holder.stdout.readline()) == base
    port = ports.take(base)
    assert port.number == base + 1
    port.release()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    port = ports.take(base)
    assert port.number == base
    port.release()


def test_a_forked_copy_cannot_give_the_port_away(base):
    port = ports.take(base)
    child = os.fork()
    if child == 0:
        port.release()
        os._exit(0)
    os.waitpid(child, 0)
    other = ports.take(base)
    assert other.number == base + 1
    other.release()
    port.release()


def test_when_all_ports_are_taken_the_option_is_named(base, monkeypatch):
    monkeypatch.setattr(ports, "PORTS_TRIED", 1)
    port = ports.take(base)
    with pytest.raises(OptionError, match=f"base_port: no free port from {base} to {base}"):
        ports.take(base)
    port.release()


def test_a_directory_that_others_can_enter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ports.tempfile, "gettempdir", lambda: str(tmp_path))
    directory = ports.lock_directory()
    assert directory.parent == tmp_path
    directory.chmod(0o755)
    with pytest.raises(UserError, match="mode 0700"):
        ports.lock_directory()
