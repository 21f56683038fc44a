import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rllib_conspec.cli.running.players import ListPlayer, RandomPlayer, action_names, read_actions
from rllib_conspec.errors import UserError
from rllib_conspec.tasks.atari.env import AtariColourEnv

NAMES = ["NOOP", "FIRE", "RIGHT", "LEFT"]


def test_a_list_by_name_and_number(tmp_path):
    (tmp_path / "list").write_text("RIGHT*3 1 # jump\n\nleft  0*2\n# the end\n")
    assert read_actions(str(tmp_path / "list"), NAMES) == [2, 2, 2, 1, 3, 0, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RIGHT\nRIHGT", "line 2: unknown action 'RIHGT'; they are NOOP, FIRE, RIGHT, LEFT. Did"),
        ("4", "line 1: unknown action '4'"),
        ("FIRE*", r"line 1: unknown action 'FIRE\*'"),
    ],
)
def test_mistakes_in_a_list(tmp_path, text, said):
    (tmp_path / "list").write_text(text)
    with pytest.raises(UserError, match=said):
        read_actions(str(tmp_path / "list"), NAMES)
    with pytest.raises(UserError, match="there is no file"):
        read_actions(str(tmp_path / "nothing"), NAMES)


def test_names_of_actions():
    assert action_names(AtariColourEnv("Pong"))[:4] == NAMES
    assert action_names(gym.make("CartPole-v1")) == ["0", "1"]


def test_a_list_for_every_episode_then_waiting(tmp_path):
    for name, text in (("a", "2 3"), ("b", "1")):
        (tmp_path / name).write_text(text)
    player = ListPlayer([str(tmp_path / "a"), str(tmp_path / "b")], AtariColourEnv("Pong"))
    chosen = []
    for _ in range(2):
        player.begin(None)
        chosen.append([player.choose(None) for _ in range(3)])
    assert chosen == [[2, 3, 0], [1, 0, 0]]


def test_chance_is_even_and_depends_on_its_seed():
    drawn = []
    for seed in (1, 1, 2):
        player = RandomPlayer(spaces.Discrete(4), seed)
        drawn.append([player.choose(None) for _ in range(4000)])
    assert drawn[0] == drawn[1] != drawn[2]
    assert np.all(np.abs(np.bincount(drawn[0]) - 1000) < 150)


def test_random_actions_that_last():
    player = RandomPlayer(spaces.Discrete(1000), 1, longest=5)
    drawn = np.array([player.choose(None) for _ in range(3000)])
    changes = np.flatnonzero(np.diff(drawn)) + 1
    lengths = np.diff(changes)
    assert set(lengths) == {1, 2, 3, 4, 5} and abs(lengths.mean() - 3) < 0.2
    player.begin(None)  # a new episode does not go on with the last one's action
    assert player._left == 0 and "1 to 5 steps" in player.name
