import json
import os
import stat

import pytest

from rllib_conspec.errors import UserError
from rllib_conspec.slurm.directory import ClusterDirectory, read_json, write_private


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_everything_is_for_the_owner_only(tmp_path, open_umask):
    directory = ClusterDirectory("mine", tmp_path / "state")
    directory.create()
    directory.new_token()
    write_private(directory.start_order, "{}")
    assert mode(directory.path) == mode(directory.logs) == mode(directory.runs) == 0o700
    assert mode(directory.token) == mode(directory.start_order) == 0o600
    assert sorted(path.name for path in directory.path.iterdir()) == [
        "logs",
        "runs",
        "start.json",
        "token",
    ]


def test_a_directory_that_others_could_read_is_closed(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    directory = ClusterDirectory("mine", tmp_path)
    directory.create()
    assert mode(directory.path) == 0o700


def test_a_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(UserError, match="belongs to another user"):
        ClusterDirectory("mine", tmp_path).create()


def test_tokens_are_long_and_new_each_time(tmp_path):
    directory = ClusterDirectory("mine", tmp_path)
    directory.create()
    directory.new_token()
    first = directory.token.read_text()
    directory.new_token()
    assert len(first) == 64
    assert directory.token.read_text() != first


def test_down_forgets_the_token_and_keeps_the_logs(tmp_path):
    directory = ClusterDirectory("mine", tmp_path)
    directory.create()
    directory.new_token()
    directory.log("7").write_text("a log")
    directory.forget()
    assert not directory.token.exists()
    assert directory.log("7").read_text() == "a log"


def test_the_default_place_is_in_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ClusterDirectory("mine").path == tmp_path / ".rllib_conspec" / "slurm" / "mine"
    assert ClusterDirectory.at(tmp_path / "a" / "b").path == tmp_path / "a" / "b"


def test_a_file_appears_whole(tmp_path):
    file = tmp_path / "order.json"
    assert read_json(file) is None
    write_private(file, json.dumps([1]))
    write_private(file, json.dumps([2]))
    assert read_json(file) == [2]
    assert list(tmp_path.iterdir()) == [file]
