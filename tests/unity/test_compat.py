import subprocess
import sys

import pytest

from rllib_conspec.unity import compat

IMPORT = "from mlagents_envs.communicator_objects.unity_message_pb2 import UnityMessageProto"


def run(*lines):
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )


def test_without_the_hook_protobuf_refuses_the_messages():
    assert run(IMPORT).returncode != 0


def test_with_the_hook_mlagents_envs_works_as_it_is():
    done = run(
        "from rllib_conspec.unity import compat",
        "compat.install()",
        IMPORT,
        "from mlagents_envs.environment import UnityEnvironment",
        "message = UnityMessageProto()",
        "message.header.status = 200",
        "message.unity_output.rl_output.agentInfos['a'].value.add(id=7, reward=0.5)",
        "print(UnityMessageProto.FromString(message.SerializeToString()) == message)",
        "from mlagents_envs.communicator_objects.observation_pb2 import PNG, ObservationProto",
        "print(PNG, ObservationProto.__module__)",
    )
    module = "mlagents_envs.communicator_objects.observation_pb2"
    assert done.stdout.splitlines() == ["True", f"1 {module}"], done.stderr


def test_installing_twice_is_installing_once():
    compat.install()
    before = list(sys.meta_path)
    compat.install()
    assert sys.meta_path == before


def test_only_the_generated_modules_are_taken_over():
    (hook,) = [finder for finder in sys.meta_path if isinstance(finder, compat._Finder)]
    assert hook.find_spec("json") is None
    assert hook.find_spec("mlagents_envs.environment") is None
    assert hook.find_spec("mlagents_envs.communicator_objects.nothing_pb2", []) is None


def test_a_module_without_a_description_is_an_import_error(tmp_path):
    source = tmp_path / "empty_pb2.py"
    source.write_text("x = 1\n")
    with pytest.raises(ImportError, match="no protobuf description"):
        compat._description(source)
