import subprocess
import sys

import gymnasium as gym
import pytest
from rooms import Walk

from rllib_conspec.environments import find
from rllib_conspec.errors import OptionError

ROOM = """
import gymnasium as gym

class SwitchRoom(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, size: int = 3):
        self.size = size

def wrapped(size=5):
    return gym.wrappers.TransformReward(SwitchRoom(size), lambda r: r)

NUMBER = 3
class Other: pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current directory with a user's file in it, which nobody has imported yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "switch_room.py").write_text(ROOM)
    yield tmp_path
    sys.modules.pop("switch_room", None)
    for id in [id for id in gym.registry if id.startswith("switch_room/")]:
        del gym.registry[id]


@pytest.fixture
def registered():
    gym.register("Walk-v0", Walk)
    yield
    del gym.registry["Walk-v0"]


def test_registered_ids(registered):
    assert find("Walk-v0").entry_point is Walk
    assert find("rllib_conspec:MultiKeyToDoor-v0") is gym.registry["MultiKeyToDoor-v0"]
    assert find("minigrid:MiniGrid-DoorKey-6x6-v0").id == "MiniGrid-DoorKey-6x6-v0"


def test_atari_games_are_registered_when_asked_for():
    script = "from rllib_conspec.environments import find; print(find('ALE/Pong-v5').id)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.stdout.strip() == "ALE/Pong-v5", answer.stderr


def test_a_class_in_a_file_of_the_current_directory_is_registered_once(folder):
    before = set(gym.registry)
    spec = find("switch_room:SwitchRoom")
    assert set(gym.registry) - before == {spec.id}
    assert find("switch_room:SwitchRoom") is spec
    assert set(gym.registry) - before == {spec.id}
    assert gym.make(spec.id, size=4).unwrapped.size == 4


def test_a_function_that_makes_an_environment(folder):
    assert gym.make(find("switch_room:wrapped")).unwrapped.size == 5


def test_classes_of_packages():
    spec = find("rllib_conspec.tasks.keys.env:MultiKeyToDoorEnv")
    assert gym.make(spec.id, keys=2).unwrapped.game.keys == 2


def test_a_python_class_is_called_as_rllib_does():
    class FromDict(Walk):
        def __init__(self, config):
            super().__init__(far=config["far"])

    spec = find(FromDict)
    assert spec.id == "FromDict"
    assert gym.make(spec, env_config={"far": 7}).unwrapped.far == 7


def said(env):
    with pytest.raises(OptionError) as raised:
        find(env)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_unknown_ids_are_answered_with_a_close_one(registered):
    assert said("Wlk-v0") == 'env: unknown environment "Wlk-v0". Did you mean "Walk-v0"?'
    assert said("rllib_conspec:OrangTree-v0").endswith('"rllib_conspec:OrangeTree-v0"?')
    assert said("ALE/Pongg-v5").endswith('Did you mean "ALE/Pong-v5"?')
    assert said("minigrid:MiniGrid-DoorKy-6x6-v0").endswith('"minigrid:MiniGrid-DoorKey-6x6-v0"?')


def test_import_paths_that_lead_nowhere(folder):
    assert said("switch_room:SwitchRom").endswith('Did you mean "switch_room:SwitchRoom"?')
    assert 'Did you mean "switch_room"?' in said("swich_room:SwitchRoom")
    assert said("nowhere:Walk-v0").startswith('env: cannot import "nowhere": No module named')
    assert "derive it from gym.Env" in said("switch_room:Other")
    assert "neither an environment nor makes one" in said("switch_room:NUMBER")
    assert "not 3" in said(3)


def test_a_module_that_fails_says_why_in_one_line(folder):
    (folder / "broken_room.py").write_text("x = 1 +\n")
    assert said("broken_room:Room").startswith('env: cannot import "broken_room": SyntaxError:')
    (folder / "bad_room.py").write_text("raise ValueError('two\\nlines')\n")
    assert said("bad_room:Room") == 'env: cannot import "bad_room": ValueError: two lines.'
