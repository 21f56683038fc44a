import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList
from odd_player import Machine

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv
from rllib_conspec.unity.client import keeper, ports
from rllib_conspec.unity.client import vector as vector_module
from rllib_conspec.unity.client.vector import UnityVectorEnv

BASE = 25000


def vector(file_name, num_envs=2, **options):
    return UnityVectorEnv(num_envs, file_name, base_port=BASE, timeout=20.0, **options)


def test_a_player_plays_what_the_environment_plays_in_process(player):
    """The same frames, rewards, ends and infos, for a seed that needs all 32 bits."""
    build = player("keys", "--agents", 3)
    env = vector(build, 3, parameters={"keys": 2})
    reference = MultiKeyToDoorVectorEnv(3, keys=2)
    assert env.single_observation_space == reference.single_observation_space
    assert env.single_action_space == reference.single_action_space
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert env.critical_events == reference.critical_events
    assert env.max_episode_steps == reference.max_episode_steps
    rng = np.random.default_rng(0)
    named = set()
    for seed in (3_456_789_012, None):
        ours, theirs = env.reset(seed=seed), reference.reset(seed=seed)
        assert np.array_equal(ours[0], theirs[0])
        for _ in range(150):
            actions = rng.integers(4, size=3)
            *ours, infos = env.step(actions)
            *theirs, expected = reference.step(actions)
            for mine, other in zip(ours, theirs, strict=True):
                assert mine.dtype == other.dtype
                assert np.array_equal(mine, other)
            assert infos.keys() == expected.keys()
            for name, values in infos.items():
                assert values.dtype == expected[name].dtype
                assert np.array_equal(values, expected[name])
            named.update(infos)
    assert {"key_taken", "is_success"} <= named
    assert "Keys/Return" in env.stats
    assert env.observation_space.contains(ours[0])
    env.close()
    env.close()
    assert env.pid is None
    for use in (env.reset, lambda: env.step(actions)):
        with pytest.raises(gym.error.ClosedEnvironmentError):
            use()


@pytest.mark.parametrize(
    ("actions", "options"),
    [("continuous", ["--observations", "png"]), ("branches", ["--first"]), ("discrete", [])],
)
def test_all_kinds_of_actions_and_several_sensors(player, actions, options):
    env = vector(player("machine", "--actions", actions, *options))
    reference = Machine(2, actions)
    assert env.single_action_space == reference.single_action_space
    assert set(env.single_observation_space) == {"camera", "gauge"}
    env.action_space.seed(0)
    ours, theirs = env.reset()[0], reference.reset()[0]
    for _ in range(14):
        for name in ours:
            assert ours[name].dtype == theirs[name].dtype
            assert np.allclose(ours[name], theirs[name])
        assert env.observation_space.contains(ours)
        chosen = env.action_space.sample()
        ours, rewards, terminated, truncated, _ = env.step(chosen)
        theirs, paid, _, over, _ = reference.step(chosen)
        assert rewards.tolist() == paid.tolist()
        assert not terminated.any()
        assert truncated.tolist() == over.tolist()
    env.close()


def test_gymnasium_makes_it_and_its_wrappers_understand_it(player):
    env = gym.make_vec(
        "rllib_conspec:Unity-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        file_name=player("machine", "--actions", "discrete"),
        base_port=BASE,
    )
    env = DictInfoToList(env)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    *_, infos = env.step(env.action_space.sample())
    assert infos == [{"rang": 2}, {"rang": 2}]
    assert env.unwrapped.pid
    env.close()


def test_one_seed_for_all_agents(player):
    env = vector(player("keys"))
    together = env.reset(seed=[7, 8])[0]
    assert np.array_equal(together, env.reset(seed=7)[0])
    with pytest.raises(ValueError, match="one seed"):
        env.reset(seed=[7, 7])
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="actions must be 0 to 3"):
        env.step(np.array([0, 4]))
    env.close()


def test_unseeded_environments_differ_and_seeded_ones_do_not(player):
    build = player("keys", "--agents", 1)
    first, second = vector(build, 1), vector(build, 1)

    def episode(env, **seed):
        env.reset(**seed)
        return np.stack([env.step(np.array([0]))[0] for _ in range(30)])

    assert first.port != second.port
    assert not np.array_equal(episode(first), episode(second))
    assert np.array_equal(episode(first, seed=3), episode(second, seed=3))
    first.close()
    second.close()


def test_a_step_before_the_first_reset_is_an_error(player):
    env = vector(player("keys"))
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.array([0, 0]))
    env.close()


def test_the_number_of_agents_must_be_right(player):
    build = player("keys", "--agents", 3)
    with pytest.raises(OptionError, match=r"num_agents: the player has 3 agents, not 2; .*: 3$"):
        vector(build, 2)
    with pytest.raises(OptionError, match="num_agents: must be at least num_envs"):
        vector(build, 2, num_agents=1)
    env = vector(build, 2, num_agents=3)
    assert env.reset(seed=0)[0].shape == (2, 5, 5, 3)
    assert env.step(np.array([0, 1]))[0].shape == (2, 5, 5, 3)
    env.close()


def test_parameters_that_the_player_does_not_know_are_refused(player):
    with pytest.raises(OptionError, match=r'parameters: unknown kyes\. Did you mean "keys"'):
        vector(player("keys"), parameters={"kyes": 2})


def test_a_player_that_plays_on_without_end_is_known_to_work(player, monkeypatch):
    monkeypatch.setattr(vector_module, "MANY_STEPS", 3)
    monkeypatch.setattr(keeper, "PAUSES", (0.0, 0.0))
    env = vector(player("keys"))
    env.reset()
    for _ in range(2):
        for _ in range(3):
            env.step(np.array([0, 0]))
        os.kill(env.pid, signal.SIGKILL)
        assert env.step(np.array([0, 0]))[3].all()
        env.step(np.array([0, 0]))
    assert env.restarts == 2
    env.close()


def test_an_environment_that_is_forgotten_ends_its_player(player):
    env = vector(player("keys"))
    env.reset()
    del env  # the fixture looks whether anything is left


@pytest.mark.parametrize("end", ["raise KeyError", "kept = [env]; kept.append(kept)"])
def test_a_program_that_forgets_to_close_ends_cleanly(player, end):
    code = f"""
from rllib_conspec.unity.client.vector import UnityVectorEnv
env = UnityVectorEnv(2, {player("keys")!r}, base_port={BASE})
env.reset()
print(env.port, flush=True)
{end}
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.count("Traceback") == end.startswith("raise"), done.stderr
    assert "Exception ignored" not in done.stderr
    assert not (ports.lock_directory() / f"port-{done.stdout.strip()}").exists()
