import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client import launch
from rllib_conspec.unity.client.launch import PlayerProcess, find_executable


def executable(path, text="#!/bin/sh\nsleep 60\n"):
    path.write_text(text)
    path.chmod(0o755)
    return path


def alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone_within(pid, seconds):
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def eventually(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_the_ending_of_a_build_may_be_left_out(tmp_path):
    build = executable(tmp_path / "my.app.v2.x86_64")  # ".app" in the middle is part of the name
    assert find_executable(str(build)) == build
    assert find_executable(str(tmp_path / "my.app.v2")) == build


def test_a_relative_path_and_a_home_directory_are_understood(tmp_path, monkeypatch):
    build = executable(tmp_path / "build")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_executable("build") == find_executable("~/build") == build


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    build = executable(tmp_path / "walker.x86_64")
    with pytest.raises(OptionError, match=r"file_name: .*does not exist.*walker\.x86_64"):
        find_executable(str(tmp_path / "waker.x86_64"))
    with pytest.raises(OptionError, match=r"is a directory.*walker\.x86_64"):
        find_executable(str(tmp_path))
    build.chmod(0o644)
    with pytest.raises(OptionError, match=r"is not executable: run .chmod \+x"):
        find_executable(str(build))


@pytest.mark.parametrize(
    ("content", "reason"),
    [("\x7fELF but not really", "exec format error"), ("#!/no/such/shell\n", "no such file")],
)
def test_a_file_that_cannot_be_run_is_said_at_once(tmp_path, content, reason):
    build = executable(tmp_path / "build", content)
    with pytest.raises(OptionError, match=f"file_name: .*cannot be run: {reason}"):
        PlayerProcess([str(build)])


def test_how_a_process_ended_and_its_last_words(tmp_path):
    script = executable(tmp_path / "build", "#!/bin/sh\necho first\necho $1 >&2\nexit 7\n")
    process = PlayerProcess([str(script), "no display"])
    assert eventually(process.ended) == "exited with code 7: no display"
    process.end()
    process = PlayerProcess([str(executable(tmp_path / "build"))])
    assert process.ended() is None
    os.kill(process.pid, signal.SIGSEGV)
    assert eventually(process.ended) == "was ended by SIGSEGV"
    process.end()


def test_much_output_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "MOST_OUTPUT", 1000)
    script = "#!/bin/sh\nfor i in 1 2 3 4 5 6; do printf '%200s' x; done; sleep 60\n"
    process = PlayerProcess([str(executable(tmp_path / "build", script))])
    assert eventually(lambda: len(process.last_line()) > 0)
    assert eventually(lambda: os.fstat(process._output.fileno()).st_size == 1200)
    process.trim_output()
    assert process.last_line() == ""
    process.end()


def test_all_that_a_player_started_ends_with_it(tmp_path):
    script = "#!/bin/sh\ntrap '' TERM\nsleep 60 & echo $!\nwait\n"
    process = PlayerProcess([str(executable(tmp_path / "build", script))])
    child = int(eventually(process.last_line))
    assert alive(child)
    os.kill(process.pid, signal.SIGSTOP)
    process.end()
    assert not alive(process.pid)
    assert gone_within(child, 30)


def test_a_player_is_given_time_to_end_by_itself(tmp_path):
    script = executable(tmp_path / "build", "#!/bin/sh\nsleep 0.2\necho done\n")
    process = PlayerProcess([str(script)])
    begin = time.monotonic()
    process.end(patience=60)
    assert time.monotonic() - begin < 30


def test_a_player_outlives_the_thread_that_asked_for_it(tmp_path):
    """The kernel's death signal comes when a thread ends, not when its process does."""
    started = []
    command = [str(executable(tmp_path / "build", "#!/bin/sh\nexec sleep 60\n"))]
    thread = threading.Thread(target=lambda: started.append(PlayerProcess(command)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert started[0].ended() is None
    started[0].end()


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_players_die_with_a_killed_parent(tmp_path, state):
    build = executable(tmp_path / "build", "#!/bin/sh\nexec sleep 60\n")
    code = f"""
import time
from rllib_conspec.unity.client.launch import PlayerProcess
print(PlayerProcess([{str(build)!r}]).pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert alive(pid)
    if state == "stopped":
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    assert gone_within(pid, 30)
    parent.wait()
    parent.stdout.close()
