"""The Python end of the connection: a gRPC server that one player calls.

Differs from mlagents-envs' in what happens when the player does not play along: every wait ends
when the player has died or the time is over. It also listens on the loopback interface only and
never shares its port.

The server is driven by whoever waits for the player, through the same calls of gRPC's core that
``grpc.server`` makes from threads of its own. A message of ``grpc.server`` passes through three
threads, which takes more time than all the rest; and a thread that waits for a player can hold up
the end of the program.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

from grpc._cython import cygrpc
from mlagents_envs.communicator import Communicator

from rllib_conspec.unity.client.faults import PlayerFault, PlayerHangs
from rllib_conspec.unity.client.ports import has_ipv6
from rllib_conspec.unity.messages import METHOD, OK, SHUTDOWN, UnityMessage, wrap

POLL_SECONDS = 0.05  # how often to see whether the player still lives
CLOSE_SECONDS = 2.0
OPTIONS = (
    (b"grpc.so_reuseport", 0),
    (b"grpc.max_receive_message_length", -1),
    (b"grpc.max_send_message_length", -1),
    # A message of some hundred kilobytes in few pieces, without measuring the line at every one.
    (b"grpc.http2.bdp_probe", 0),
    (b"grpc.http2.lookahead_bytes", 4 << 20),
    (b"grpc.http2.max_frame_size", 1 << 20),
)
PATH = "/{}/{}".format(*METHOD).encode()
NO_FLAGS = 0
CALL, MESSAGE, END, SENT, CLOSED = "call", "message", "end", "sent", "closed"  # kinds of events


class LoopbackCommunicator(Communicator):
    """Talks to the one player that was told ``port``."""

    def __init__(self, port: int, timeout: float):
        super().__init__(0, port)
        self.timeout = timeout
        self._waiting: Any = None  # the player's call that expects an answer
        self._due = 0  # events that will come; the server lives until they have
        self._open = False
        self._owner = os.getpid()
        self._queue = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(OPTIONS, False)
        self._server.register_completion_queue(self._queue)
        # `localhost`, which players call, may mean either.
        for host in ("127.0.0.1", "[::1]") if has_ipv6() else ("127.0.0.1",):
            if not self._listen(f"{host}:{port}"):
                self._server.destroy()
                raise PlayerFault(f"could not be given port {port}, which is in use")
        self._server.start()
        self._open = True
        self._expect_call()

    def _listen(self, address: str) -> bool:
        try:
            return bool(self._server.add_http2_port(address.encode()))
        except RuntimeError:
            return False

    # --- events of the server -------------------------------------------------------------------

    def _expect_call(self) -> None:
        self._server.request_call(self._queue, self._queue, (CALL, None))
        self._due += 1

    def _begin(self, call: Any, kind: str, *operations: Any) -> None:
        """Start operations of a call; the call is part of the tag, so that it lives on."""
        call.start_server_batch(operations, (kind, call))
        self._due += 1

    def _next(self, seconds: float) -> bytes | None:
        """Handle one event, if there is one in time; the message, if it is a message."""
        event = self._queue.poll(time.time() + seconds)
        if event.completion_type == cygrpc.CompletionType.queue_timeout:
            return None
        self._due -= 1
        kind, call = event.tag
        if kind == CALL and event.success and self._open:
            self._expect_call()
            self._answer_call(event.call, event.call_details.method)
        elif kind == MESSAGE and (data := event.batch_operations[0].message()) is not None:
            self._waiting = call
            return data
        return None

    def _answer_call(self, call: Any, path: bytes) -> None:
        self._begin(call, END, cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS))
        if path == PATH:
            self._begin(call, MESSAGE, cygrpc.ReceiveMessageOperation(NO_FLAGS))
        else:
            self._send(call, None, cygrpc.StatusCode.unimplemented)

    def _send(self, call: Any, data: bytes | None, status: Any = cygrpc.StatusCode.ok) -> None:
        message = () if data is None else (cygrpc.SendMessageOperation(data, NO_FLAGS),)
        self._begin(
            call,
            SENT,
            cygrpc.SendInitialMetadataOperation((), NO_FLAGS),
            *message,
            cygrpc.SendStatusFromServerOperation((), status, b"", NO_FLAGS),
        )

    # --- the conversation -----------------------------------------------------------------------

    def _receive(self, check: Callable[[], None]) -> Any:
        """The next message of the player; ``check`` raises when the player is gone."""
        deadline = time.monotonic() + self.timeout
        looked = time.monotonic()
        while (data := self._next(POLL_SECONDS)) is None:
            now = time.monotonic()
            if now - looked >= POLL_SECONDS:
                check()
                looked = now
            if now > deadline:
                raise PlayerHangs(f"did not answer for {self.timeout:g} s")
        return UnityMessage.FromString(data)

    def _reply(self, message: Any) -> None:
        call, self._waiting = self._waiting, None
        self._send(call, message.SerializeToString())

    def initialize(self, inputs, poll_callback=None):
        """The handshake: what the player says of itself, answered by mlagents-envs' ``inputs``."""
        first = self._receive(poll_callback)
        answer = wrap()
        answer.unity_input.MergeFromString(inputs.SerializeToString())
        self._reply(answer)
        self._receive(poll_callback)  # the player is ready for its first command
        return first.unity_output

    def exchange(self, inputs, poll_callback=None):
        """Send a whole message; the player's answer, or None when it says good-bye."""
        self._reply(inputs)
        answer = self._receive(poll_callback)
        return answer.unity_output if answer.header.status == OK else None

    def farewell(self, seconds: float) -> None:
        """Tell the player to end, if it calls within that time."""
        deadline = time.monotonic() + seconds
        while True:
            if self._waiting is not None:
                self._reply(wrap(SHUTDOWN))
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._next(left)

    def close(self) -> None:
        """Hang up and free the port."""
        if not self._open:
            return
        self._open = False
        self._server.shutdown(self._queue, (CLOSED, None))
        self._due += 1
        self._server.cancel_all_calls()
        self._waiting = None
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._due and time.monotonic() < deadline:
            self._next(POLL_SECONDS)
        if not self._due:
            self._server.destroy()
            self._queue.shutdown()
            self._queue.poll(time.time() + POLL_SECONDS)

    def __del__(self) -> None:
        if self._owner == os.getpid():
            self.close()
        else:  # a fork has none of the threads that a server waits for when it goes
            for forever in (self._server, self._queue):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(forever))
