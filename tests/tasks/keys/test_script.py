import gymnasium as gym
import pytest

from rllib_conspec.tasks.keys.layout import Room
from rllib_conspec.tasks.keys.script import optimal_actions, shortest_path


@pytest.mark.parametrize("keys", [1, 2, 3, 4])
@pytest.mark.parametrize("conjunctive", [False, True])
def test_the_solution_takes_every_key_and_is_paid_once_at_the_end(keys, conjunctive):
    env = gym.make("rllib_conspec:MultiKeyToDoor-v0", keys=keys, conjunctive=conjunctive)
    env.reset(seed=0)
    actions = optimal_actions(keys, conjunctive)
    steps = [env.step(action) for action in actions]
    assert [reward for _, reward, *_ in steps] == [0.0] * (len(actions) - 1) + [1.0]
    assert [over for _, _, over, *_ in steps] == [False] * (len(actions) - 1) + [True]
    infos = [info for *_, info in steps]
    taken = [info["key_taken"] for info in infos if "key_taken" in info]
    doors = [info["door_opened"] for info in infos if "door_opened" in info]
    assert taken == list(range(1, keys + 1))
    assert doors == ([keys] if conjunctive else list(range(1, keys + 1)))
    assert infos[-1]["is_success"] is True


def test_no_way_is_an_error():
    with pytest.raises(ValueError, match="cannot be reached"):
        shortest_path(Room.from_map("A#... #.... ..... ..... ....k"), 24)
