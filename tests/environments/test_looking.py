import pickle
import sys
from importlib import metadata

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from rooms import Shows, Walk, showing

from rllib_conspec.environments import look, make_vector
from rllib_conspec.errors import OptionError

KEYS = "rllib_conspec:MultiKeyToDoor-v0"
DOOR = "minigrid:MiniGrid-DoorKey-6x6-v0"


def said(*args, **options):
    with pytest.raises(OptionError) as raised:
        look(*args, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_our_tasks():
    keys = look(KEYS, {"keys": 2})
    assert keys.observation_space.shape == (5, 5, 3) and keys.action_space.n == 4
    assert keys.vectorised and keys.observation_range == 255.0 and keys.channels == "last"
    assert keys.max_episode_steps == gym.make(KEYS, keys=2).unwrapped.max_episode_steps
    for variant in ("room", "black"):
        trees = look("rllib_conspec:OrangeTree-v0", {"variant": variant})
        assert trees.observation_space.shape == (84, 84, 3) and trees.max_episode_steps == 65
        assert trees.vectorised and trees.observation_range == 255.0


def test_the_form_that_is_used_is_the_one_looked_at():
    pong = look("ALE/Pong-v5", {}, max_episode_steps=200)
    assert pong.vectorised and pong.observation_space.shape == (4, 84, 84)
    assert pong.channels == "first" and pong.observation_range == 255.0
    single = look("ALE/Pong-v5", {}, max_episode_steps=200, mode="sync")
    assert not single.vectorised and single.observation_space.shape == (210, 160, 3)
    assert single.channels == "last"


def test_a_vector_form_that_lacks_an_option_is_not_used():
    pong = look("ALE/Pong-v5", {"obs_type": "ram"}, max_episode_steps=200)
    assert not pong.vectorised and pong.observation_space.shape == (128,)
    assert look("ALE/Pong-v5", {"stack_num": 2}, max_episode_steps=200).channels == "first"


def test_a_vector_form_that_cannot_be_told_a_lower_limit_is_not_used():
    rule = look(KEYS, {}).max_episode_steps
    lower = look(KEYS, {}, max_episode_steps=rule - 1)
    assert not lower.vectorised and lower.max_episode_steps == rule - 1
    higher = look(KEYS, {}, max_episode_steps=rule + 1)
    assert higher.vectorised and higher.max_episode_steps == rule
    assert look("CartPole-v1", {}, max_episode_steps=9).vectorised


class Walks(VectorEnv):
    """A vector form of `Walk` as somebody else may write it: silent about limits."""

    single_observation_space = Walk().observation_space
    single_action_space = Walk.action_space

    def __init__(self, num_envs, autoreset_mode="NextStep"):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode(autoreset_mode)}
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        return np.zeros((self.num_envs, 2), np.float32), {}

    def step(self, actions):
        zeros = np.zeros(self.num_envs)
        return *self.reset()[:1], zeros, zeros > 0, zeros > 0, {}


@pytest.fixture
def walks():
    gym.register("Walks-v0", Walk, vector_entry_point=Walks)
    yield "Walks-v0"
    del gym.registry["Walks-v0"]


def test_vector_forms_of_others(walks):
    assert look(walks, {}, limit_needed=False).vectorised
    assert look(walks, {}, limit_needed=False).max_episode_steps is None
    assert not look(walks, {}, max_episode_steps=9).vectorised
    assert not look(walks, {"far": 3}, limit_needed=False).vectorised
    assert said(walks, {"far": 3, "autoreset_mode": 1}).startswith("env_config.")
    # Its only form with this option resets at another moment: nothing is left.
    assert said(walks, {"autoreset_mode": "SameStep"}, limit_needed=False) == (
        "env_config.autoreset_mode: only the vector form takes it, which does not fit here."
    )


def test_registered_limits():
    assert look("CartPole-v1", {}).max_episode_steps == 500
    assert look("CartPole-v1", {"max_episode_steps": 9}).max_episode_steps == 9
    assert look("Hopper-v5", {}).max_episode_steps == 1000


def test_an_unknown_limit_has_to_be_set():
    unknown = "max_episode_steps: is not known for this environment; set it in the config"
    assert said("rooms:Walk", {}) == unknown + "."
    assert said("ALE/Pong-v5", {}) == unknown + "."
    assert look("rooms:Walk", {}, limit_needed=False).max_episode_steps is None


def test_max_steps_is_taken_for_the_limit_where_nothing_else_is_said():
    assert look(DOOR, {}, observation_key="image").max_episode_steps == 360


def test_minigrid():
    door = look(DOOR, {}, observation_key="image", max_episode_steps=90)
    assert door.observation_space.shape == (7, 7, 3) and not door.vectorised
    assert 5 <= door.observation_range <= 10
    assert "direction, image, mission" in said(DOOR, {}, max_episode_steps=90)
    assert "observation_key: image" in said(DOOR, {}, max_episode_steps=90)


def test_the_same_environment_has_the_same_facts_and_they_travel():
    one, other = (look(DOOR, {}, observation_key="image", max_episode_steps=90) for _ in range(2))
    assert one == other == pickle.loads(pickle.dumps(one))


def test_a_class_in_a_file_of_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_room.py").write_text(
        "from rooms import Walk\n"
        "class OwnRoom(Walk):\n"
        "    max_episode_steps = 7\n"
        "    observation_names = ('north', 'east')\n"
        "    def __init__(self, scale: float = 20.0):\n"
        "        self.scale, self.far, self.render_mode = scale, 99, None\n"
        "        self.observation_space = Walk().observation_space\n"
    )
    facts = look("own_room:OwnRoom", {})
    assert facts.max_episode_steps == 7 and not facts.vectorised
    assert facts.observation_names == ("north", "east")
    assert facts.observation_range > 10
    env = make_vector("own_room:OwnRoom", {}, 3, facts)
    assert env.reset(seed=0)[0].shape == (3, 2)
    assert said("own_room:OwnRoom", {"scle": 1}) == (
        'env_config.scle: unknown option. Did you mean "scale"?'
    )


def test_names_that_do_not_fit_are_no_names():
    for names in (("only one",), (1, 2), "ab", None, 3):
        walk = look(lambda config, names=names: Walk(names=names), {}, limit_needed=False)
        assert walk.observation_names == ()
    walk = look(lambda config: Walk(names=["a", "b"]), {}, limit_needed=False)
    assert walk.observation_names == ("a", "b")


def test_channels_that_cannot_be_told_are_no_reason_to_refuse():
    cube = showing(spaces.Box(0, 255, (3, 3, 3), np.uint8))
    assert look(cube, {}, limit_needed=False).channels == ""


def test_environments_are_closed_whatever_happens():
    closed = []

    class Closing(Walk):
        def close(self):
            closed.append(self)

    look(lambda config: Closing(), {}, max_episode_steps=3)
    with pytest.raises(OptionError):
        look(lambda config: Closing(), {}, max_episode_steps=3, observation_key="x")
    assert len(closed) == 2


class Broken(Walk):
    def __init__(self, size: int = 3, **options):
        super().__init__()
        if size > 9:
            raise ValueError("size is\n at most 9")
        if size > 8:
            raise OptionError("size", "is 9")
        self.size = size

    def step(self, action):
        if self.size > 7:
            raise IndexError("no such\nplace")
        return super().step(action)


@pytest.fixture
def broken():
    gym.register("Broken-v0", Broken, max_episode_steps=5)
    yield "Broken-v0"
    del gym.registry["Broken-v0"]


def test_an_environment_that_cannot_be_built_or_played_says_why_in_one_line(broken):
    assert look(broken, {"whatever": 1}).max_episode_steps == 5
    assert said(broken, {"size": 10}) == "env_config: Broken-v0 cannot be built: size is at most 9"
    assert said(broken, {"size": 9}) == "env_config.size: is 9"
    assert said(broken, {"size": 8}).startswith(
        "env: Broken-v0 cannot be played: IndexError: no such place (test_looking.py, line "
    )


@pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")
def test_observations_of_another_shape_than_declared():
    liar = showing(spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (4,)))
    assert said(liar, {}, limit_needed=False) == (
        "env: <lambda> gives observations of shape (4,); its observation_space says (3,)."
    )


def test_who_returns_no_environment_is_told(broken):
    message = said(lambda config: EnvSpec("x"), {}, limit_needed=False)
    assert message.startswith("env_config: <lambda> cannot be built: The environment must inherit")
    assert look(lambda config: Shows(spaces.Discrete(3)), {}, limit_needed=False)


def test_what_is_played_and_by_which_program():
    """Recorded episodes of another game, or of another version of it, mean something else."""
    keys = look("rllib_conspec:MultiKeyToDoor-v0", {"keys": 2})
    assert keys.plays == "rllib_conspec:MultiKeyToDoor-v0 keys=2"
    assert keys.version == f"rllib_conspec {metadata.version('rllib_conspec')}"
    cart = look("CartPole-v1", {"max_episode_steps": 7})
    assert (cart.plays, cart.version) == (
        "CartPole-v1",
        f"gymnasium {metadata.version('gymnasium')}",
    )
    own = look("rooms:Walk", {"far": 5}, max_episode_steps=9)
    assert (own.plays, own.version) == ("rooms:Walk far=5", "")
    pong = look("rllib_conspec:Atari-v0", {"game": "air_raid", "delayed": True})
    assert (pong.plays, pong.version) == ("AirRaid", f"ale-py {metadata.version('ale-py')}")
