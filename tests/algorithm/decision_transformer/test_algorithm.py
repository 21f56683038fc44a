"""The whole algorithm: what an iteration shows, and that a restored run continues to the digit."""

import pytest
from inside import comparable, differences, flat
from planted_game import coins_config
from ray.rllib.algorithms.algorithm import Algorithm

# Of RLlib's loop: a time, and lengths that it smooths on the worker, outside of checkpoints.
OF_THE_LOOP = ("env_runners/sample", "env_runners/env_to_module_sum_episodes_length_")


def different(expected, result):
    found = differences(expected, comparable(result))
    return {name: pair for name, pair in found.items() if not name.startswith(OF_THE_LOOP)}


@pytest.fixture(scope="module")
def algo(ray_local, recording):
    built = coins_config(recording, updates=20).rewards(success="sparse").build_algo()
    yield built
    built.stop()


def test_an_iteration_learns_and_measures(algo):
    result = algo.train()
    shown = result["env_runners"]
    assert shown["num_episodes"] == 4 and shown["episode_len_mean"] == 6
    assert 0 <= shown["success_rate"] <= 1 and 0 <= shown["episode_return_mean"] <= 6
    learned = result["learners"]["default_policy"]
    assert learned["total_loss"] > 0 and 0 < learned["action_accuracy"] <= 1
    assert result["num_env_steps_sampled_lifetime"] == 24
    assert {"rl_update", "sample", "iteration"} <= result["seconds"].keys()


def test_restored_it_continues_to_the_digit(algo, tmp_path):
    algo.save_to_path(tmp_path / "checkpoint")
    held = flat(algo.get_module().get_state())
    uninterrupted = [comparable(algo.train()) for _ in range(2)]
    shown = ("learners/default_policy/total_loss", "env_runners/episode_return_mean")
    assert all(name in r for name in shown for r in uninterrupted)
    assert len({r[shown[0]] for r in uninterrupted}) == 2
    algo.restore_from_path(tmp_path / "checkpoint")
    assert flat(algo.get_module().get_state()) == held, "before anything is played"
    for expected in uninterrupted:
        assert different(expected, algo.train()) == {}
    other = Algorithm.from_checkpoint(tmp_path / "checkpoint")
    assert different(uninterrupted[0], other.train()) == {}
    other.stop()
