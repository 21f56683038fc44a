"""Lets mlagents-envs 0.28.0, generated for protobuf 3, be imported with any newer protobuf.

protobuf refuses the generated ``*_pb2`` modules since version 4, but what they describe is still
good: each holds its ``.proto`` file in serialized form. So these modules are not executed; the
serialized description is read out of their source and given to the protobuf that is installed.
"""

from __future__ import annotations

import ast
import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGE = "mlagents_envs.communicator_objects"


def install() -> None:
    """Put the hook in place; must come before the first import of ``mlagents_envs``."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        if not (fullname.startswith(f"{PACKAGE}.") and fullname.endswith("_pb2")):
            return None
        found = PathFinder.find_spec(fullname, path)
        if found is None or found.origin is None:
            return None
        return ModuleSpec(fullname, _Loader(Path(found.origin)), origin=found.origin)


class _Loader(Loader):
    def __init__(self, source: Path):
        self.source = source

    def exec_module(self, module: ModuleType) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.internal import builder

        serialized = _description(self.source)
        for needed in descriptor_pb2.FileDescriptorProto.FromString(serialized).dependency:
            if needed.startswith("mlagents_envs/"):
                importlib.import_module(needed.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(serialized)
        builder.BuildMessageAndEnumDescriptors(module.DESCRIPTOR, vars(module))
        builder.BuildTopDescriptorsAndMessages(module.DESCRIPTOR, module.__name__, vars(module))


def _description(source: Path) -> bytes:
    """The serialized ``FileDescriptorProto`` in a generated module: ``serialized_pb=_b('…')``."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "serialized_pb":
            literal = next(n for n in ast.walk(node.value) if isinstance(n, ast.Constant))
            return literal.value.encode("latin1")
    raise ImportError(f"{source} holds no protobuf description")
