"""ML-Agents' messages with the floats of an observation as one block of bytes.

On the wire a packed list of floats and a byte string look the same. Read as a list, every pixel
becomes a Python object (about 0.4 ms for a frame of 84×84×3); read as bytes, numpy uses them where
they lie. So the message types are built a second time, with that one field declared as bytes.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mlagents_envs.communicator_objects import unity_message_pb2

METHOD = "communicator_objects.UnityToExternalProto", "Exchange"
API_VERSION = "1.5.0"
OK, SHUTDOWN = 200, 400  # status in the header of a message
STEP, RESET = 0, 1  # commands to the player
PNG = 1  # compression of an observation; 0 is none
# Flags on the dimensions of an observation, which tell its channels from its height and width.
NO_PROPERTY, TRANSLATIONAL = 1, 2


def _build() -> tuple[type, ...]:
    pool = descriptor_pool.DescriptorPool()
    known = set()

    def add(file) -> None:
        if file.name in known:
            return
        known.add(file.name)
        for needed in file.dependencies:
            add(needed)
        description = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
        for message in description.message_type:
            for inner in message.nested_type:
                if inner.name == "FloatData":
                    inner.field[0].type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                    inner.field[0].label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
        pool.Add(description)

    add(unity_message_pb2.DESCRIPTOR)
    names = "UnityMessageProto", "AgentActionProto", "ObservationProto"
    found = [pool.FindMessageTypeByName(f"communicator_objects.{name}") for name in names]
    return tuple(message_factory.GetMessageClass(message) for message in found)


UnityMessage, AgentAction, Observation = _build()


def wrap(status: int = OK):
    """An empty message with its header."""
    message = UnityMessage()
    message.header.status = status
    return message
