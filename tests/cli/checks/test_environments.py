import json

import gymnasium as gym
import pytest

from rllib_conspec.cli.checks.environments import check_environment
from rllib_conspec.errors import OptionError


class Anything(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, size: int = 3, **options):
        if size > 9:
            raise ValueError("size is\n at most 9")


@pytest.fixture(autouse=True)
def registered():
    gym.register("Anything-v0", Anything)
    yield
    del gym.registry["Anything-v0"]


def test_the_spaces_of_a_good_one():
    observations, actions = check_environment("rllib_conspec:MultiKeyToDoor-v0", {"keys": 2})
    assert observations.shape == (5, 5, 3) and actions.n == 4
    check_environment("CartPole-v1", {"max_episode_steps": 9})


def test_an_environment_that_takes_any_option_says_itself_what_is_wrong():
    check_environment("Anything-v0", {"whatever": 1})
    with pytest.raises(OptionError) as raised:
        check_environment("Anything-v0", {"size": 10})
    assert str(raised.value) == "config.env_config: Anything-v0 cannot be built: size is at most 9"


def test_unknown_ids():
    with pytest.raises(OptionError, match='Did you mean "Anything-v0"'):
        check_environment("Anythin-v0", {})
    with pytest.raises(OptionError, match='env: cannot import "nowhere"'):
        check_environment("nowhere:Anything-v0", {})


def test_atari_games_are_registered_when_asked_for():
    observations, _ = check_environment("ALE/Pong-v5", {})
    assert observations.shape == (210, 160, 3)


MINE = """\
import gymnasium as gym
import numpy as np


class Mine(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, size: int = 3):
        self.size = size

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {}
"""


@pytest.mark.parametrize("run", ["PPO", "WholeEpisodePPO"])
def test_an_environment_in_a_file_here(rllib, refused, tmp_path, run):
    (tmp_path / f"mine_{run}.py").write_text(MINE)
    flags = ["--run", run, "--env", f"mine_{run}:Mine"]
    limit = {"PPO": {}, "WholeEpisodePPO": {"max_episode_steps": 5}}[run]
    line = refused("train", *flags, "--config", json.dumps({"env_config": {"sizes": 4}} | limit))
    assert line == '--config: env_config.sizes: unknown option. Did you mean "size"?'
    line = refused("train", "--run", run, "--env", f"mine_{run}:Mien")
    assert line.endswith(f'Did you mean "mine_{run}:Mine"?')
    if run == "WholeEpisodePPO":
        assert ".max_episode_steps: " in f".{refused('train', *flags)}"
    result = rllib("train", *flags, "--config", json.dumps({"env_config": {"size": 4}} | limit))
    assert "Ray was started" in result.stderr  # all was well
