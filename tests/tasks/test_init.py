import gymnasium as gym

from rllib_conspec import tasks
from rllib_conspec.unity.client import builtin


def test_all_ids_are_known_and_can_be_registered_again():
    tasks.register()
    for name, (entry_point, vector_entry_point) in tasks.ENTRY_POINTS.items():
        spec = gym.spec(name)
        assert (spec.entry_point, spec.vector_entry_point) == (entry_point, vector_entry_point)
        for path in (entry_point, vector_entry_point):
            assert callable(gym.envs.registration.load_env_creator(path))


def test_our_player_is_the_built_in_one():
    assert builtin.command(1)[1:3] == ["-m", "rllib_conspec.tasks.orangetree.player"]
