"""Seeds and checkpoints: the same run again, and a run that goes on where it stopped."""

import json
import os
import subprocess
import sys

import pytest
import ray
from inside import comparable, differences, flat, memories, states
from tiny import keys_config


def test_same_seed_same_curve(built):
    def curve(seed):
        algo = built(keys_config(seed=seed))
        return [comparable(algo.train()) for _ in range(3)]

    first, again, other = curve(1), curve(1), curve(2)
    assert first == again
    assert first[0]["conspec/loss"] != other[0]["conspec/loss"]
    assert {
        "env_runners/episode_return_mean",
        "env_runners/num_env_steps_sampled_lifetime",
        "learners/default_policy/policy_loss",
    } <= first[0].keys()


CONTINUE = """
import json, os, sys
import ray
from inside import comparable, states
from ray.rllib.algorithms.algorithm import Algorithm
from rllib_conspec import ConSpec

ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
for checkpoint in sys.argv[1:]:
    algo = Algorithm.from_checkpoint(checkpoint)
    assert type(algo) is ConSpec
    held = states(algo)
    version = algo.env_runner.reward_model.version
    results = [comparable(algo.train()) for _ in range(3)]
    with open(checkpoint + ".json", "w") as file:
        json.dump([held, version, results, states(algo)], file)
    algo.stop()
"""
MODELS = {"conspec": {}, "conspec_and_rnd": {"rnd": {"dim": 8}}}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, ray_local):
    """Runs that were saved half way, and went on; the checkpoints, continued in a new process."""
    here = tmp_path_factory.mktemp("saved")
    runs = {}
    for name, models in MODELS.items():
        algo = keys_config(seed=3).rewards(models=models).build_algo()
        for _ in range(4):
            result = algo.train()
        assert result["conspec"]["frozen"] >= 1, "the tests need exemplars to restore"
        assert all(memories(algo)["counts"])
        held = states(algo)
        algo.save_to_path(here / name)
        results = [comparable(algo.train()) for _ in range(3)]
        runs[name] = held, results, states(algo)
        algo.stop()
    env = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    arguments = [str(here / name) for name in MODELS]
    subprocess.run([sys.executable, "-c", CONTINUE, *arguments], env=env, check=True, timeout=480)
    continued = {name: json.loads((here / f"{name}.json").read_text()) for name in MODELS}
    return {name: (runs[name], continued[name]) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_restored_in_a_new_process_it_continues_to_the_digit(uninterrupted, name):
    (held, results, end), (found, version, continued, final) = uninterrupted[name]
    assert len({r["conspec/loss"] for r in results}) == 3
    assert differences(held[0], found[0]) == {}
    assert version == 4
    for expected, got in zip(results, continued, strict=True):
        assert differences(expected, got) == {}
    assert differences(end[0], final[0]) == {}


def test_restored_into_the_running_algorithm_it_continues_to_the_digit(built, tmp_path):
    """Its worker plays with the restored weights and pays with the restored snapshot."""
    algo = built(keys_config().rewards(models={"rnd": {"dim": 8}}))
    for _ in range(2):
        algo.train()
    held, policy = states(algo), flat(algo.get_module().get_state())
    snapshot = flat(algo.env_runner.snapshot)
    algo.save_to_path(tmp_path / "checkpoint")
    uninterrupted = [comparable(algo.train()) for _ in range(2)]
    assert algo.env_runner.reward_model.version == 4

    algo.restore_from_path(tmp_path / "checkpoint")
    assert states(algo) == held
    assert flat(algo.get_module().get_state()) == policy, "before anything is played"
    assert flat(algo.env_runner.snapshot) == snapshot
    assert algo.env_runner.reward_model.version == 2
    for expected in uninterrupted:
        assert differences(expected, comparable(algo.train())) == {}


def test_restoring_leaves_a_checkpoint_of_another_task_alone(built, tmp_path):
    """Networks of another size: an error, not a mixture."""
    algo = built(keys_config())
    algo.train()
    algo.save_to_path(tmp_path / "checkpoint")
    other = built(keys_config().rl_module(model_config={"encoder_dim": 16, "core_dim": 8}))
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.restore_from_path(tmp_path / "checkpoint")
