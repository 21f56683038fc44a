import os
import signal
import stat
import subprocess
import sys

import pytest

from rllib_conspec.slurm.session_directory import SessionDirectory, sweep

HOLD = """
import sys, time
from rllib_conspec.slurm.session_directory import SessionDirectory
held = SessionDirectory(*sys.argv[1:])
print(held.path, flush=True)
time.sleep(600)
"""


@pytest.fixture
def job(tmp_path):
    """Starts a process with a directory below tmp_path: (process, name of the directory)."""
    started = []

    def start(cluster):
        words = [sys.executable, "-c", HOLD, str(tmp_path), cluster]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        return started[-1], os.path.basename(started[-1].stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_it_is_closed_to_others_and_can_be_removed(tmp_path):
    directory = SessionDirectory(tmp_path, "mine")
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    assert len(directory.path.name) <= 12
    (directory.path / "t").mkdir()
    directory.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_job_left_is_removed_by_the_next_of_its_cluster(tmp_path, job):
    dead, left = job("mine")
    (tmp_path / left / "t").mkdir()
    kill(dead)
    assert [path.name for path in tmp_path.iterdir()] == [left]
    directory = SessionDirectory(tmp_path, "mine")
    assert list(tmp_path.iterdir()) == [directory.path]
    directory.remove()


def test_the_living_other_clusters_other_users_and_strangers_are_left_alone(
    tmp_path, job, monkeypatch
):
    _, living = job("mine")
    dead, other_cluster = job("other")
    kill(dead)
    (tmp_path / "ray-made_by_ray").mkdir()
    (tmp_path / "ray-file").write_text("mine")
    dead, elsewhere = job("mine")
    kill(dead)
    moved = tmp_path.parent / f"{tmp_path.name}-{elsewhere}"
    (tmp_path / elsewhere).rename(moved)
    (tmp_path / "ray-link").symlink_to(moved)
    kept = {living, other_cluster, "ray-made_by_ray", "ray-file", "ray-link"}
    sweep(tmp_path, "mine")
    assert {path.name for path in tmp_path.iterdir()} == kept and moved.exists()

    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    sweep(tmp_path, "other")
    assert {path.name for path in tmp_path.iterdir()} == kept
