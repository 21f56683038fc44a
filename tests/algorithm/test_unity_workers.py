"""Two rollout workers with Unity players, and what happens to training when a player fails.

The faults are real signals to real player processes, at a known step in the middle of episodes. The
tests share one algorithm, in the order of this file.
"""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from inside import on_workers
from tiny import EAGER

from rllib_conspec import ConSpecConfig

ODD_PLAYER = Path(__file__).parents[1] / "unity" / "odd_player.py"
AGENTS = 2  # of each player
TIMEOUT = 10.0


def config_for(encoder, **env_config):
    return (
        ConSpecConfig()
        .environment("rllib_conspec:Unity-v0", env_config={"timeout": TIMEOUT} | env_config)
        .episodes(per_batch=2 * AGENTS, per_minibatch=2, max_steps=65)
        .env_runners(num_env_runners=2, num_envs_per_env_runner=AGENTS)
        .rl_module(model_config={"encoder": encoder, "encoder_dim": 8, "core_dim": 0})
        .training(learn_without_reward=True)  # nothing is played ahead: faults are in their batch
        .conspec(**(EAGER | {"encoder": encoder}))
        .debugging(seed=1)
    )


@pytest.fixture(scope="module")
def pair(ray_local):
    """Two workers with the built-in player, both told the same port."""
    algo = config_for("strided").build_algo()
    yield algo
    algo.stop()


def players(algo):
    """{worker: process id of its player}"""
    return on_workers(algo, lambda runner: runner.env.unwrapped.pid)


def signal_at(runner, which, step):
    """Let the worker send its own player a signal, in front of a step of the next episodes."""
    env, count, original = runner.env.unwrapped, [0], runner.env.unwrapped.step

    def step_with_fault(actions):
        count[0] += 1
        if count[0] != step:
            return original(actions)
        env.step = original
        os.kill(env.pid, which)
        start = time.monotonic()
        answer = original(actions)
        env.seconds_to_notice = time.monotonic() - start
        return answer

    env.step = step_with_fault


def disturb(algo, which, worker=1, step=20):
    algo.env_runner_group.foreach_env_runner(
        lambda runner: runner.worker_index == worker and signal_at(runner, which, step),
        local_env_runner=False,
    )


def train_until_hit(algo):
    """The result of the first batch with an incident. Where workers play ahead, the next one may
    have been played before.
    """
    result = algo.train()
    assert_whole_batch(result)
    return result if result["incidents"] else algo.train()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def assert_whole_batch(result):
    assert result["env_runners"]["num_episodes"] == 2 * AGENTS
    assert 20 < result["env_runners"]["episode_len_min"] <= 65


def dropped(result):
    return result["env_runners"]["num_episodes_dropped_lifetime"]


def test_workers_told_the_same_port_do_not_meet(pair):
    assert_whole_batch(pair.train())
    ports = on_workers(pair, lambda runner: runner.env.unwrapped.port)
    assert len(set(ports.values())) == 2
    assert len(set(players(pair).values())) == 2


def test_the_driver_has_no_player_of_its_own(pair):
    assert pair.env_runner.env is None


@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGSTOP])
def test_a_player_lost_in_mid_episode_is_replaced_and_only_its_episodes_are_dropped(pair, which):
    before, already = players(pair), dropped(pair.train())
    disturb(pair, which)
    result = train_until_hit(pair)
    (incident,) = result["incidents"]
    assert incident.startswith("rollout worker 1: the Unity player ")
    assert_whole_batch(result)
    noticed = on_workers(pair, lambda runner: getattr(runner.env.unwrapped, "seconds_to_notice", 0))
    assert noticed[1] < TIMEOUT + 5
    assert dropped(result) == already + AGENTS
    after = players(pair)
    assert after[2] == before[2]
    assert after[1] != before[1]
    assert not alive(before[1])
    assert_whole_batch(pair.train())


def test_a_player_that_leaves_in_the_handshake_is_started_again(ray_local, tmp_path):
    """The first start leaves when it has said hello; so does the first one after the fault."""
    memory = tmp_path / "starts"
    player = tmp_path / "flaky.x86_64"
    words = [sys.executable, ODD_PLAYER, "flaky", "--memory", memory, "--after", "1"]
    player.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} --agents {AGENTS} "$@"\n')
    player.chmod(0o755)
    algo = config_for("conv", file_name=str(player), num_agents=AGENTS).build_algo()
    try:
        assert_whole_batch(algo.train())
        assert int(memory.read_text()) > 1
        memory.write_text("0")
        disturb(algo, signal.SIGKILL)
        result = train_until_hit(algo)
        assert dropped(result) == AGENTS
        assert_whole_batch(result)
        assert int(memory.read_text()) == 2
    finally:
        algo.stop()


def test_stopping_leaves_no_player(pair):
    pids = players(pair).values()
    pair.stop()
    deadline = time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, pids))
