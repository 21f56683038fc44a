"""The Python end of the connection: a gRPC server that one player calls.

Differs from mlagents-envs' in what happens when the player does not play along: every wait ends
when the player has died or the time is over. It also listens on the loopback interface only, never
shares its port, and hands messages over in memory instead of through a pipe.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable

import grpc
from mlagents_envs.communicator import Communicator

from rllib_conspec.unity.faults import PlayerFault, PlayerHangs
from rllib_conspec.unity.messages import METHOD, OK, SHUTDOWN, UnityMessage, wrap
from rllib_conspec.unity.ports import has_ipv6
from rllib_conspec.unity.threads import Worker

POLL_SECONDS = 0.05  # how often to see whether the player still lives
OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


class LoopbackCommunicator(Communicator):
    """Talks to the one player that was told ``port``."""

    def __init__(self, port: int, timeout: float):
        super().__init__(0, port)
        self.timeout = timeout
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._replies: queue.SimpleQueue = queue.SimpleQueue()
        self._closed = threading.Event()
        # One thread: a player waits for an answer before it calls again.
        self._worker = Worker("unity-player")
        self._server = grpc.server(self._worker, options=OPTIONS)
        handler = grpc.unary_unary_rpc_method_handler(
            self._exchange, UnityMessage.FromString, UnityMessage.SerializeToString
        )
        service, method = METHOD
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
        # `localhost`, which players call, may mean either.
        for host in ("127.0.0.1", "[::1]") if has_ipv6() else ("127.0.0.1",):
            try:
                self._server.add_insecure_port(f"{host}:{port}")
            except RuntimeError as error:
                raise PlayerFault(f"could not be given port {port}, which is in use") from error
        self._server.start()

    def _exchange(self, request, context):
        """One call of the player, in a thread of the server: blocks until there is an answer."""
        self._requests.put(request)
        while not self._closed.is_set():
            try:
                return self._replies.get(timeout=1.0)
            except queue.Empty:
                if not context.is_active():
                    break
        return wrap(SHUTDOWN)

    def _receive(self, check: Callable[[], None]):
        """The next message of the player; ``check`` raises when the player is gone."""
        deadline = time.monotonic() + self.timeout
        while True:
            with contextlib.suppress(queue.Empty):
                return self._requests.get(timeout=POLL_SECONDS)
            check()
            if time.monotonic() > deadline:
                raise PlayerHangs(f"did not answer for {self.timeout:g} s")

    def initialize(self, inputs, poll_callback=None):
        """The handshake: what the player says of itself, answered by mlagents-envs' ``inputs``."""
        first = self._receive(poll_callback)
        answer = wrap()
        answer.unity_input.MergeFromString(inputs.SerializeToString())
        self._replies.put(answer)
        self._receive(poll_callback)  # the player is ready for its first command
        return first.unity_output

    def exchange(self, inputs, poll_callback=None):
        """Send a whole message; the player's answer, or None when it says good-bye."""
        self._replies.put(inputs)
        answer = self._receive(poll_callback)
        return answer.unity_output if answer.header.status == OK else None

    def farewell(self) -> None:
        """Tell the player to end."""
        if not self._closed.is_set():
            self._closed.set()
            self._replies.put(wrap(SHUTDOWN))

    def close(self) -> None:
        """Hang up and free the port."""
        self.farewell()
        self._server.stop(None).wait(2.0)  # the port is free only then
        self._worker.shutdown()
