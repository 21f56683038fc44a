import socket
import threading
import time

import grpc
import pytest
from mlagents_envs.communicator_objects.unity_input_pb2 import UnityInputProto

from rllib_conspec.unity.client import ports
from rllib_conspec.unity.client.communicator import LoopbackCommunicator
from rllib_conspec.unity.client.faults import PlayerDied, PlayerFault, PlayerHangs
from rllib_conspec.unity.messages import METHOD, SHUTDOWN, UnityMessage, wrap


@pytest.fixture
def port():
    taken = ports.take(23000)
    yield taken.number
    taken.release()


@pytest.fixture
def listening(port):
    made = LoopbackCommunicator(port, timeout=5.0)
    yield made
    made.close()


class Caller(threading.Thread):
    """A player that sends ``messages`` and notes the answers, until one fails."""

    def __init__(self, port, messages, pause=0.0, method=METHOD[1]):
        super().__init__()
        self.messages, self.answers, self.error = messages, [], None
        self.port, self.pause, self.method = port, pause, method
        self.start()

    def run(self):
        with grpc.insecure_channel(f"localhost:{self.port}") as channel:
            call = channel.unary_unary(
                f"/{METHOD[0]}/{self.method}",
                UnityMessage.SerializeToString,
                UnityMessage.FromString,
            )
            for message in self.messages:
                try:
                    self.answers.append(call(message, wait_for_ready=True, timeout=20))
                except grpc.RpcError as error:
                    self.error = error
                    return
                time.sleep(self.pause)

    def check(self):
        if not self.is_alive():
            raise PlayerDied("left")


def named(name):
    message = wrap()
    message.unity_output.rl_initialization_output.name = name
    return message


def all_well():
    pass


def test_handshake_commands_and_farewell(listening, port):
    caller = Caller(port, [named("first"), wrap(), named("second")])
    inputs = UnityInputProto()
    inputs.rl_initialization_input.seed = 9
    assert listening.initialize(inputs, all_well).rl_initialization_output.name == "first"
    answer = listening.exchange(wrap(), all_well)
    assert answer.rl_initialization_output.name == "second"
    listening.farewell(1.0)
    caller.join()
    assert caller.answers[0].unity_input.rl_initialization_input.seed == 9
    assert [answer.header.status for answer in caller.answers] == [200, 200, SHUTDOWN]


def test_a_player_that_says_good_bye(listening, port):
    caller = Caller(port, [wrap(), wrap(), wrap(SHUTDOWN)])
    listening.initialize(UnityInputProto(), all_well)
    assert listening.exchange(wrap(), all_well) is None
    listening.farewell(1.0)
    caller.join()


def test_a_player_that_is_busy_is_told_when_it_calls(listening, port):
    caller = Caller(port, [wrap(), wrap(), wrap()], pause=0.3)
    listening.initialize(UnityInputProto(), all_well)
    listening._reply(wrap())
    listening.farewell(2.0)
    caller.join()
    assert caller.answers[-1].header.status == SHUTDOWN


def test_a_call_that_is_never_answered_does_not_hold_up_the_end(listening, port):
    caller = Caller(port, [wrap()])
    listening._receive(all_well)
    listening.close()
    caller.join()
    assert caller.error.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)


def test_only_the_one_method_is_served(listening, port):
    caller = Caller(port, [wrap()], method="Initialize")
    with pytest.raises(PlayerDied):
        listening._receive(caller.check)
    caller.join()
    assert caller.error.code() == grpc.StatusCode.UNIMPLEMENTED


def test_nobody_is_waited_for_longer_than_agreed(port):
    impatient = LoopbackCommunicator(port, timeout=0.3)
    begin = time.monotonic()
    with pytest.raises(PlayerHangs, match=r"did not answer for 0\.3 s"):
        impatient.initialize(UnityInputProto(), all_well)
    assert time.monotonic() - begin < 10
    impatient.close()


def test_a_player_that_leaves_between_the_two_messages_is_noticed(listening, port):
    """mlagents-envs 0.28.0 waits here for ever."""
    caller = Caller(port, [wrap()])
    with pytest.raises(PlayerDied):
        listening.initialize(UnityInputProto(), caller.check)
    caller.join()


def test_a_port_is_not_shared_and_free_afterwards(listening, port):
    with pytest.raises(PlayerFault, match=f"port {port}, which is in use"):
        LoopbackCommunicator(port, timeout=1.0)
    listening.close()
    listening.close()
    again = LoopbackCommunicator(port, timeout=1.0)
    again.close()


def test_only_this_host_can_connect(listening, port):
    with open("/proc/net/tcp") as v4, open("/proc/net/tcp6") as v6:
        rows = [line.split() for line in [*v4, *v6]]
    local = {row[1].split(":")[0] for row in rows if row[1].endswith(f":{port:04X}")}
    loopback = {
        socket.inet_aton("127.0.0.1")[::-1].hex().upper(),
        "0000000000000000FFFF00000100007F",  # the same, written as version 6
        "00000000000000000000000001000000",
    }
    assert local
    assert local <= loopback
