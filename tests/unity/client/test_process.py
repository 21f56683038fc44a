import gc
import os
import subprocess
import sys
import weakref

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.channels import EventsChannel
from rllib_conspec.unity.client import ports
from rllib_conspec.unity.client.faults import PlayerDied, PlayerFault, PlayerHangs
from rllib_conspec.unity.client.process import Player


@pytest.fixture
def port():
    taken = ports.take(24000)
    yield taken.number
    taken.release()


def start(build, port, timeout=20.0):
    return Player([build], port, timeout=timeout)


def test_a_player_from_start_to_end(player, port):
    events = EventsChannel()
    playing = Player([player("keys")], port, timeout=20.0, side_channels=[events])
    assert playing.pid
    agents = playing.begin()["Keys"].value
    assert len(agents) == 2
    assert playing.behavior_specs["Keys"].action_spec.discrete_branches == (4,)
    process = playing._process._process
    playing.close()
    playing.close()
    assert playing.pid is None
    assert process.returncode == 0  # it was asked to end, and did


def test_leaving_during_the_handshake_is_noticed_and_quoted(player, port):
    """mlagents-envs 0.28.0 waits for ever, and nobody sees what the player said."""
    with pytest.raises(PlayerDied) as caught:
        start(player("leaves"), port, timeout=60.0)
    said = "exited with code 3: I do not like this trainer (during the handshake)"
    assert str(caught.value) == said
    # The port can be used at once.
    start(player("keys"), port).close()


def test_a_player_that_never_speaks_is_killed(player, port):
    with pytest.raises(PlayerHangs, match="handshake"):
        start(player("ignores"), port, timeout=1.0)


def test_another_version_of_the_protocol_is_refused_at_once(player, port):
    with pytest.raises(OptionError, match=r"file_name: .*version 2\.0\.0 .*not 1\.5\.0"):
        start(player("version"), port)


def test_a_broken_message_is_a_fault(player, port):
    playing = start(player("keys"), port)

    def nonsense(data):
        raise ValueError("unexpectedly short")

    playing._side_channel_manager.process_side_channel_message = nonsense
    with pytest.raises(PlayerFault, match="cannot be read: unexpectedly short"):
        playing.begin()
    playing.abort()


def test_nothing_keeps_an_ended_player_in_memory(player, port):
    """mlagents-envs leaves every environment with `atexit`: restarts would pile up."""
    playing = start(player("keys"), port)
    playing.abort()
    seen = weakref.ref(playing)
    del playing
    gc.collect()
    assert seen() is None


def test_a_forked_copy_does_not_end_the_player(player, port):
    playing = start(player("keys"), port)
    child = os.fork()
    if child == 0:
        playing.abort()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(playing.begin()["Keys"].value) == 2
    playing.close()


def test_a_program_that_forgets_to_close_ends_nevertheless(player, port):
    """The server's threads must not hold up the interpreter."""
    code = f"""
from rllib_conspec.unity import compat
compat.install()
from rllib_conspec.unity.client.process import Player
playing = Player([{player("keys")!r}], {port}, timeout=20.0)
playing.begin()
print("played", flush=True)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "played\n"), done.stderr
