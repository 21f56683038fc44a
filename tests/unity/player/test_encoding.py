import numpy as np
import pytest
from gymnasium import spaces
from mlagents_envs.base_env import DimensionProperty, ObservationSpec, ObservationType

from rllib_conspec.unity.client.sensors import Sensors
from rllib_conspec.unity.messages import AgentAction, wrap
from rllib_conspec.unity.player.encoding import ActionReader, ObservationWriter

BOTH = spaces.Dict(
    eye=spaces.Box(0, 255, (6, 5, 3), np.uint8), speed=spaces.Box(-9, 9, (2,), np.float32)
)
ROWS = {
    "eye": np.random.default_rng(0).integers(0, 256, (2, 6, 5, 3), dtype=np.uint8),
    "speed": np.float32([[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("kind", ["float", "png"])
@pytest.mark.parametrize("channels_first", [False, True])
def test_a_trainer_sees_what_the_environment_shows(kind, channels_first):
    writer = ObservationWriter(BOTH, kind, channels_first)
    for index in (0, 1):
        messages = wrap().unity_output.rl_output.agentInfos["a"].value.add().observations
        writer.write(messages, ROWS, index)
        specs = [
            ObservationSpec(
                tuple(m.shape),
                tuple(map(DimensionProperty, m.dimension_properties)),
                ObservationType.DEFAULT,
                m.name,
            )
            for m in messages
        ]
        assert specs[0].shape == ((3, 6, 5) if channels_first else (6, 5, 3))
        sensors = Sensors(specs)
        assert sensors.space["eye"] == BOTH["eye"]
        out = sensors.empty(1)
        sensors.read(messages, out, 0)
        assert np.array_equal(out["eye"][0], ROWS["eye"][index])
        assert np.array_equal(out["speed"][0], ROWS["speed"][index])


def test_a_single_space_and_a_number_are_observations_too():
    writer = ObservationWriter(spaces.Discrete(9))
    messages = wrap().unity_output.rl_output.agentInfos["a"].value.add().observations
    writer.write(messages, np.array([5]), 0)
    assert list(messages[0].shape) == [1]
    assert np.frombuffer(messages[0].float_data.data, np.float32).tolist() == [5.0]


def test_discrete_actions():
    reader = ActionReader(spaces.Discrete(4, start=10))
    given = {0: AgentAction(discrete_actions=[3]), 2: AgentAction(vector_actions_deprecated=[2.0])}
    assert reader.read(given, 3).tolist() == [13, 10, 12]


def test_actions_in_branches():
    reader = ActionReader(spaces.MultiDiscrete([3, 2]))
    assert reader.read({1: AgentAction(discrete_actions=[2, 1])}, 2).tolist() == [[0, 0], [2, 1]]
    spec = wrap().unity_output.rl_initialization_output.brain_parameters.add().action_spec
    reader.describe(spec)
    assert (spec.num_continuous_actions, list(spec.discrete_branch_sizes)) == (0, [3, 2])


def test_continuous_actions_are_stretched_to_the_space():
    reader = ActionReader(spaces.Box(np.float32([0, -2]), np.float32([10, 2])))
    given = {0: AgentAction(continuous_actions=[1.0, -1.0])}
    assert reader.read(given, 2).tolist() == [[10, -2], [5, 0]]
