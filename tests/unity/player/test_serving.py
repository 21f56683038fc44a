"""Our player, driven by mlagents-envs' own environment: nothing but the import hook is ours."""

import subprocess
import sys
import time

import numpy as np
import pytest
from direct import DirectPlayer
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel
from mlagents_envs.side_channel.stats_side_channel import StatsSideChannel
from odd_player import Machine

from rllib_conspec.tasks.keys.script import optimal_actions
from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv
from rllib_conspec.unity.client import ports
from rllib_conspec.unity.messages import RESET, wrap
from rllib_conspec.unity.player.serving import Service


@pytest.fixture
def port():
    """Held for mlagents-envs, which would share it with whoever else wants it."""
    taken = ports.take(22000)
    yield taken.number
    taken.release()


def pictures(steps):
    return np.rint(steps.obs[0] * 255).astype(np.uint8)


@pytest.mark.parametrize("kind", ["float", "png"])
def test_mlagents_envs_plays_our_player(player, port, kind):
    parameters, stats = EnvironmentParametersChannel(), StatsSideChannel()
    env = UnityEnvironment(
        player("keys", "--agents", "2", "--observations", kind),
        base_port=port,
        no_graphics=True,
        timeout_wait=20,
        side_channels=[parameters, stats],
    )
    try:
        parameters.set_float_parameter("seed", 7.0)
        env.reset()
        (name,) = env.behavior_specs
        spec = env.behavior_specs[name]
        assert name == "Keys"
        assert spec.action_spec.discrete_branches == (4,)
        assert [o.shape for o in spec.observation_specs] == [(5, 5, 3)]

        reference = MultiKeyToDoorVectorEnv(2)
        expected, _ = reference.reset(seed=7)
        decisions, ends = env.get_steps(name)
        assert (len(decisions), len(ends)) == (2, 0)
        assert np.array_equal(pictures(decisions), expected)

        # The first agent solves the task, the second one walks into a wall.
        solution = optimal_actions(1)
        for action in solution:
            actions = np.array([[action], [0]])
            expected, _, terminated, *_ = reference.step(actions[:, 0])
            env.set_actions(name, ActionTuple(discrete=actions.astype(np.int32)))
            env.step()
            decisions, ends = env.get_steps(name)
        assert terminated.tolist() == [True, False]
        assert (ends.reward.tolist(), ends.interrupted.tolist()) == ([1.0], [False])
        assert np.array_equal(pictures(ends)[0], expected[0])
        assert [value for value, _ in stats.stats["Keys/Return"]] == [1.0]

        # In the same message the first one is back, under a new id, after the other one.
        assert len(decisions) == 2
        assert ends.agent_id[0] not in decisions.agent_id
        first = reference.reset(options={"reset_mask": terminated})[0][0]
        shown = pictures(decisions)[list(decisions.agent_id).index(max(decisions.agent_id))]
        assert np.array_equal(shown, first)

        parameters.set_float_parameter("keys", 2.0)
        parameters.set_float_parameter("seed", 7.0)
        env.reset()
        expected, _ = MultiKeyToDoorVectorEnv(2, keys=2).reset(seed=7)
        assert np.array_equal(pictures(env.get_steps(name)[0]), expected)
    finally:
        env.close()


def test_a_continuous_player_and_several_sensors(player, port):
    env = UnityEnvironment(
        player("machine", "--actions", "scaled"),
        base_port=port,
        timeout_wait=20,
        side_channels=[StatsSideChannel()],
    )
    try:
        env.reset()
        spec = env.behavior_specs["Machine"]
        assert spec.action_spec.continuous_size == 2
        assert [(o.name, o.shape) for o in spec.observation_specs] == [
            ("camera", (6, 5, 3)),
            ("gauge", (3,)),
        ]
        env.set_actions("Machine", ActionTuple(continuous=np.float32([[1, -1], [0, 0.5]])))
        env.step()
        decisions, _ = env.get_steps("Machine")
        assert decisions.obs[1].tolist() == [[1, 10, -2], [1, 5, 1]]
        assert decisions.reward.tolist() == [1, 1]
    finally:
        env.close()


def test_the_seed_of_the_handshake_counts_for_the_first_episodes():
    service = Service(lambda _: MultiKeyToDoorVectorEnv(2), "Keys")
    service._seed = 5
    direct = DirectPlayer(service)
    agents = direct.begin()["Keys"].value
    floats = [np.frombuffer(a.observations[0].float_data.data, np.float32) for a in agents]
    expected, _ = MultiKeyToDoorVectorEnv(2).reset(seed=5)
    assert np.array_equal(np.rint(np.stack(floats) * 255).reshape(expected.shape), expected)
    assert service._seed is None


@pytest.mark.parametrize("seed", [0, 1, 65535, 65536, 3_456_789_012, 2**32 - 1])
def test_a_seed_in_two_halves_arrives_whole(seed):
    heard = []

    class Listening(Machine):
        def reset(self, *, seed=None, options=None):
            heard.append(seed)
            return super().reset(seed=seed, options=options)

    direct = DirectPlayer(Service(lambda _: Listening(1, "discrete"), "Machine"))
    high, low = divmod(seed, 1 << 16)
    direct.parameters.set_float_parameter("seed_high", high)
    direct.parameters.set_float_parameter("seed_low", low)
    direct.begin()
    direct.begin()
    assert heard == [seed, None]


def test_a_trainer_that_does_not_greet_gets_no_messages_that_it_cannot_read():
    quiet = DirectPlayer(Service(lambda _: Machine(1, "discrete"), "Machine"), greet=False)
    quiet.begin()
    for _ in range(3):
        quiet.go_on({})
    assert quiet.events.announced.critical_events == ()
    assert quiet.events.take() == []
    friend = DirectPlayer(Service(lambda _: Machine(1, "discrete"), "Machine"))
    friend.begin()
    for _ in range(2):
        friend.go_on({})
    assert friend.events.announced.critical_events == ("rang",)
    assert [(name, value) for name, _, value in friend.events.take()] == [("rang", 2)]


def test_memory_does_not_grow_with_the_steps():
    """A message of protobuf keeps all that was ever written into it: each must be a new one."""
    service = Service(lambda _: Machine(8, "discrete"), "Machine")
    begin, step = wrap(), wrap()
    begin.unity_input.rl_input.command = RESET
    service.answer(begin.unity_input.rl_input)

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    for _ in range(200):
        service.answer(step.unity_input.rl_input)
    before = resident()
    for _ in range(2000):  # about 6 MB of observations
        service.answer(step.unity_input.rl_input)
    assert resident() - before < 2e6


def test_a_player_without_a_trainer_ends_by_itself(player, port):
    """mlagents-envs does not tie its players to itself: they must see that it is gone."""
    trainer = f"""
import os, time
from rllib_conspec.unity import compat
compat.install()
from mlagents_envs.environment import UnityEnvironment
env = UnityEnvironment({player("keys")!r}, base_port={port}, timeout_wait=20)
print(env._process.pid, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", trainer], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 30
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            return "\nState:\tZ" not in status.read()
    except OSError:
        return False
