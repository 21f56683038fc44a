import numpy as np
from mlagents_envs.communicator_objects.unity_message_pb2 import UnityMessageProto

from rllib_conspec.unity.messages import OK, AgentAction, UnityMessage, wrap

FLOATS = np.linspace(-1, 1, 12, dtype=np.float32)


def observation_of(message):
    agents = message.unity_output.rl_output.agentInfos["a"].value
    agent = agents[0] if len(agents) else agents.add(id=3)
    return agent.observations[0] if len(agent.observations) else agent.observations.add()


def test_what_is_written_as_bytes_is_read_as_floats_by_mlagents_envs():
    ours = wrap()
    observation_of(ours).float_data.data = FLOATS.tobytes()
    theirs = UnityMessageProto.FromString(ours.SerializeToString())
    assert theirs.header.status == OK
    assert list(observation_of(theirs).float_data.data) == FLOATS.tolist()


def test_what_is_sent_as_floats_is_read_as_bytes():
    theirs = UnityMessageProto()
    observation_of(theirs).float_data.data.extend(FLOATS.tolist())
    ours = UnityMessage.FromString(theirs.SerializeToString())
    data = observation_of(ours).float_data.data
    assert np.array_equal(np.frombuffer(data, np.float32), FLOATS)


def test_an_action_fits_into_a_message():
    message = wrap()
    actions = message.unity_input.rl_input.agent_actions["a"].value
    actions.append(AgentAction(discrete_actions=[2]))
    theirs = UnityMessageProto.FromString(message.SerializeToString())
    sent = theirs.unity_input.rl_input.agent_actions["a"].value
    assert [list(action.discrete_actions) for action in sent] == [[2]]
