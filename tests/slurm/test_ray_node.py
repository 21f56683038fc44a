import socket

import pytest

from rllib_conspec.slurm import ray_node


def test_ports_are_free_and_different():
    ports = ray_node.free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as one:
            one.bind(("", port))
            one.listen()
            assert ray_node.reachable("127.0.0.1", port)
        assert not ray_node.reachable("127.0.0.1", port)


def test_the_token_itself_is_in_no_variable(tmp_path):
    (tmp_path / "token").write_text("secret")
    variables = ray_node.authentication(tmp_path / "token")
    assert variables["RAY_AUTH_MODE"] == "token"
    assert "secret" not in variables.values()


@pytest.mark.parametrize("memory", [None, "2000"])
def test_flags_of_the_user_win(tmp_path, monkeypatch, memory):
    """`echo` in place of Python shows the command line."""
    monkeypatch.setattr(ray_node.sys, "executable", "/bin/echo")
    if memory:
        monkeypatch.setenv("SLURM_MEM_PER_NODE", memory)
    node = ray_node.RayNode(str(tmp_path), "mine", {}, tmp_path / "log")
    node._start(
        ["--head", "--dashboard-host=0.0.0.0"], {"--dashboard-host": "127.0.0.1", "--port": 7}
    )
    node._process.wait()
    words = (tmp_path / "log").read_text().split()
    assert words.count("--dashboard-host=0.0.0.0") == 1
    assert "--dashboard-host=127.0.0.1" not in words
    assert {"--head", "--port=7", "--min-worker-port=0", "--num-gpus=0"} <= set(words)
    assert ("--object-store-memory=629145600" in words) == bool(memory)
    node.close()


def test_the_ends_of_rays_logs_outlive_its_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_node, "KEPT_BYTES", 4)
    (tmp_path / "node").mkdir()
    node = ray_node.RayNode(str(tmp_path / "node"), "mine", {}, tmp_path / "7.log")
    logs = node.temp_dir / "session_2026-01-01" / "logs"
    (logs / "old").mkdir(parents=True)
    (logs / "raylet.out").write_text("first, last")
    node.keep_logs()
    node.close()
    assert list((tmp_path / "node").iterdir()) == []
    (kept,) = (tmp_path / "7.ray").iterdir()
    assert kept.name == "raylet.out" and kept.read_text() == "last"
