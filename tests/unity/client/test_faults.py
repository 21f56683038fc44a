"""Everything that can happen to a player, while its environment is in use."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.unity.client import keeper
from rllib_conspec.unity.client.vector import UnityVectorEnv

BASE = 27000
NOTHING = np.array([0, 0])


@contextlib.contextmanager
def vector(file_name, **options):
    env = UnityVectorEnv(2, file_name, **{"base_port": BASE, "timeout": 20.0} | options)
    try:
        yield env
    finally:
        env.close()


def step_through_a_loss(env, before):
    """The step in which the player is lost, and the one after it."""
    observations, rewards, terminated, truncated, infos = env.step(NOTHING)
    assert np.array_equal(observations, before)
    assert rewards.tolist() == [0, 0]
    assert not terminated.any()
    assert truncated.all()
    assert {name: values.tolist() for name, values in infos.items()} == {
        "dropped": [True, True],
        "_dropped": [True, True],
    }
    observations, rewards, terminated, truncated, infos = env.step(NOTHING)
    assert rewards.tolist() == [0, 0]
    assert not (terminated | truncated).any()
    assert infos == {}
    return observations


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_player_lost_in_mid_episode_costs_its_episodes_and_nothing_else(player, fault):
    timeout = 3.0 if fault == signal.SIGSTOP else 20.0
    with vector(player("keys"), timeout=timeout) as env:
        first, _ = env.reset(seed=0)
        for _ in range(5):
            before = env.step(NOTHING)[0]
        lost, port = env.pid, env.port
        os.kill(lost, fault)
        begin = time.monotonic()
        observations = step_through_a_loss(env, before)
        assert time.monotonic() - begin < 60
        assert (env.restarts, env.dropped_episodes) == (1, 2)
        assert env.pid != lost
        assert env.port == port
        # In this task every episode begins with the same picture.
        assert np.array_equal(observations, first)
        # Whole episodes follow, and seeds mean what they always mean.
        for _ in range(65):
            *_, terminated, truncated, _ = env.step(NOTHING)
        assert terminated.all()
        assert not truncated.any()
        assert np.array_equal(env.reset(seed=0)[0], first)


def test_a_loss_while_nobody_looks_is_noticed_by_reset(player):
    with vector(player("keys")) as env:
        first, _ = env.reset(seed=4)
        frames = [env.step(NOTHING)[0] for _ in range(20)]
        os.kill(env.pid, signal.SIGKILL)
        assert np.array_equal(env.reset(seed=4)[0], first)
        assert np.array_equal([env.step(NOTHING)[0] for _ in range(20)], frames)
        assert env.restarts == 1


def test_leaving_during_the_handshake_is_forgiven(player, tmp_path):
    build = player("flaky", "--after", 2, "--memory", tmp_path / "starts")
    with vector(build) as env:
        assert env.restarts == 2
        assert env.reset(seed=0)[0].shape == (2, 5, 5, 3)


def test_leaving_every_time_is_not(player, monkeypatch):
    monkeypatch.setattr(keeper, "PAUSES", (0.0, 0.0))
    text = r"failed 2 times in a row; at last it exited with code 3: I do not like this trainer"
    with pytest.raises(UserError, match=text):
        UnityVectorEnv(2, player("leaves"), base_port=BASE)


def test_two_environments_told_the_same_port(player):
    build = player("keys")
    with vector(build) as first, vector(build) as second:
        assert (first.port, second.port) == (BASE, BASE + 1)
        one, other = first.reset(seed=1)[0], second.reset(seed=1)[0]
        for _ in range(30):
            assert np.array_equal(one, other)
            one, other = first.step(NOTHING)[0], second.step(NOTHING)[0]
        os.kill(first.pid, signal.SIGKILL)
        step_through_a_loss(first, one)
        assert second.step(NOTHING)[3].tolist() == [False, False]
        assert second.restarts == 0


def test_what_the_user_must_put_right_is_said_at_once(player, tmp_path):
    missing, forbidden = tmp_path / "missing.x86_64", tmp_path / "forbidden.x86_64"
    forbidden.write_text("#!/bin/sh\n")
    wrong_format = tmp_path / "windows.exe"
    wrong_format.write_bytes(b"MZ\x90\x00")
    wrong_format.chmod(0o755)
    expected = {
        str(missing): "does not exist",
        str(forbidden): "is not executable",
        str(wrong_format): "exec format error",
        player("version"): r"version 2\.0\.0 of the ML-Agents protocol",
    }
    begin = time.monotonic()
    for build, message in expected.items():
        with pytest.raises(OptionError, match=message) as caught:
            UnityVectorEnv(2, build, base_port=BASE)
        assert caught.value.option == "file_name"
        assert "\n" not in str(caught.value)
    assert time.monotonic() - begin < 30  # no start is repeated, none is waited for


def test_the_player_of_a_killed_trainer_is_gone_within_seconds(player):
    code = f"""
import time
from rllib_conspec.unity.client.vector import UnityVectorEnv
env = UnityVectorEnv(2, {player("keys")!r}, base_port={BASE})
env.reset()
print(env.pid, env.port, flush=True)
time.sleep(60)
"""
    trainer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid, port = map(int, trainer.stdout.readline().split())
    os.kill(pid, signal.SIGSTOP)  # it cannot even see that the connection is lost
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        with open(f"/proc/{pid}/status") as status:
            if "\nState:\tZ" in status.read():
                break
        time.sleep(0.02)
    assert time.monotonic() < deadline
    with vector(player("keys")) as env:  # and its port is free again
        assert env.port == port
