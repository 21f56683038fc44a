import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.tasks.orangetree import player, script
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv
from rllib_conspec.unity.client import ports
from rllib_conspec.unity.client.vector import UnityVectorEnv

# isort: split
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel
from mlagents_envs.side_channel.stats_side_channel import StatsSideChannel

BASE = 28000
CONSOLE_SCRIPT = str(Path(sys.executable).with_name("orangetree-player"))


def pictures(steps):
    return np.rint(steps.obs[0] * 255).astype(np.uint8)


def test_mlagents_envs_plays_it_like_a_unity_build():
    """The console script, driven by an unmodified ``UnityEnvironment`` from reset to close."""
    port = ports.take(BASE)
    parameters, stats = EnvironmentParametersChannel(), StatsSideChannel()
    env = UnityEnvironment(
        CONSOLE_SCRIPT,
        base_port=port.number,
        no_graphics=True,
        timeout_wait=30,
        additional_args=["--agents", "2"],
        side_channels=[parameters, stats],
    )
    reference = OrangeTreeVectorEnv(2, variant="room")
    try:
        parameters.set_float_parameter("seed", 11.0)
        parameters.set_float_parameter("variant", 2.0)
        env.reset()
        (name,) = env.behavior_specs
        assert name == "OrangeTree"
        expected, _ = reference.reset(seed=11)
        decisions, _ = env.get_steps(name)
        assert np.array_equal(pictures(decisions), expected)
        done = np.zeros(2, bool)
        while not done.any():
            actions = script.actions(reference)
            expected, rewards, done, *_ = reference.step(actions)
            env.set_actions(name, ActionTuple(discrete=actions[:, None].astype(np.int32)))
            env.step()
            decisions, ends = env.get_steps(name)
        assert np.array_equal(pictures(ends), expected[done])
        assert ends.reward.tolist() == rewards[done].tolist() == [1.0] * done.sum()
        assert not ends.interrupted.any()
        assert len(decisions) == 2  # the finished ones are back already
        assert [value for value, _ in stats.stats["OrangeTree/is_success"]] == [1.0] * done.sum()
    finally:
        env.close()
        port.release()


@pytest.mark.parametrize("variant", ["black", "random"])
def test_the_built_in_player_shows_what_the_world_shows_in_process(variant):
    env = UnityVectorEnv(3, base_port=BASE, parameters={"variant": variant, "reward": 3})
    reference = OrangeTreeVectorEnv(3, variant=variant)
    assert env.single_observation_space == reference.single_observation_space
    assert env.single_action_space == reference.single_action_space
    assert env.critical_events == ("flat_taken", "orange_picked")
    assert env.max_episode_steps == 65
    memory = next(
        line for line in Path(f"/proc/{env.pid}/status").read_text().splitlines() if "VmRSS" in line
    )
    assert int(memory.split()[1]) < 150_000
    seed = 4_000_000_011
    assert np.array_equal(env.reset(seed=seed)[0], reference.reset(seed=seed)[0])
    names, rng = set(), np.random.default_rng(0)
    for _ in range(70):
        # The first agent picks the orange, so that episodes end at different times.
        actions = rng.integers(4, size=3)
        actions[0] = script.actions(reference)[0]
        *ours, infos = env.step(actions)
        *theirs, expected = reference.step(actions)
        for mine, other in zip(ours, theirs, strict=True):
            assert np.array_equal(mine, other)
        assert infos.keys() == expected.keys()
        for key, values in infos.items():
            assert np.array_equal(values, expected[key])
        names.update(infos)
    assert {"flat_taken", "orange_picked", "is_success"} <= names
    env.close()


def test_unknown_words_are_refused():
    words = "parameters: variant must be one of train, black, room, random"
    with pytest.raises(OptionError, match=words):
        UnityVectorEnv(1, base_port=BASE, parameters={"variant": "blak"})


def test_neither_torch_nor_ray_is_loaded():
    """A player must start quickly and stay small: a worker has its own copy of both already."""
    code = (
        "import sys, rllib_conspec.tasks.orangetree.player, rllib_conspec.unity.player.serving\n"
        "print([name for name in ('torch', 'ray', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_log_file_and_a_clean_end(tmp_path):
    """Without a trainer nothing happens until it is told to end."""
    log = tmp_path / "player.log"
    port = ports.take(BASE)
    command = [CONSOLE_SCRIPT, "-nographics", "-batchmode", "-logFile", str(log)]
    process = subprocess.Popen([*command, "--mlagents-port", str(port.number)])
    deadline = time.monotonic() + 60
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0
    assert log.read_text() == ""
    port.release()


def test_parameters_make_the_games():
    env = player.make(2, "black", {})
    assert (env.num_envs, env.variant) == (2, "black")
    env = player.make(1, "black", {"variant": 2.0, "reward": 3.0, "normalize_reward": 0.0})
    assert env.variant == "room"
    assert player.make(1, "train", {"variant": 3.0}).variant == "random"
    with pytest.raises(UserError, match="variant must be 0 to 3, not 7"):
        player.make(1, "train", {"variant": 7.0})


def test_the_command_line_explains_itself(capsys):
    with pytest.raises(SystemExit) as caught:
        player.main([])
    assert caught.value.code == 2
    assert "--mlagents-port or --play" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"orangetree-player: --out must end in \.gif or \.png"):
        player.main(["--play", "--out", "episode.mp4"])
