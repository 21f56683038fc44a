"""Seeds and checkpoints: the same run again, and a run that goes on where it stopped."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import ray
from tiny import comparable, keys_config, memories, reward_learner


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
from tiny import comparable, memories
from ray.rllib.algorithms.algorithm import Algorithm
from rllib_conspec import ConSpec

ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
algo = Algorithm.from_checkpoint(sys.argv[1])
assert type(algo) is ConSpec
held = memories(algo)
version = algo.env_runner.scorer.version
results = [comparable(algo.train()) for _ in range(3)]
json.dump([held, version, results, memories(algo)], open(sys.argv[2], "w"), default=repr)
"""


def test_restored_in_a_new_process_it_continues_to_the_digit(built, tmp_path):
    algo = built(keys_config(seed=3))
    for _ in range(4):
        result = algo.train()
    assert result["conspec"]["frozen"] >= 1, "the test needs exemplars to restore"
    held = memories(algo)
    assert all(held["counts"])
    algo.save_to_path(tmp_path / "checkpoint")
    uninterrupted = [comparable(algo.train()) for _ in range(3)]
    assert len({r["conspec/loss"] for r in uninterrupted}) == 3

    address = ray.get_runtime_context().gcs_address
    env = os.environ | {"RAY_ADDRESS": address}
    arguments = [str(tmp_path / "checkpoint"), str(tmp_path / "out.json")]
    subprocess.run([sys.executable, "-c", CONTINUE, *arguments], env=env, check=True, timeout=240)
    found, version, continued, final = json.loads((tmp_path / "out.json").read_text())

    def plain(value):
        return json.loads(json.dumps(value, default=repr))

    assert found == plain(held)
    assert version == held["version"]
    for expected, got in zip(uninterrupted, continued, strict=True):
        different = {k: (v, got.get(k)) for k, v in expected.items() if got.get(k) != v}
        assert not different
        assert got.keys() == expected.keys()
    assert final == plain(memories(algo))


def test_restoring_into_a_running_algorithm(built, tmp_path):
    """Its workers pay with the restored snapshot, not with their own."""
    algo = built(keys_config())
    for _ in range(2):
        algo.train()
    held = memories(algo)
    algo.save_to_path(tmp_path / "checkpoint")
    for _ in range(2):
        algo.train()
    assert algo.env_runner.scorer.version == 4
    algo.restore_from_path(tmp_path / "checkpoint")
    assert memories(algo) == held
    assert algo.env_runner.scorer.version == 2
    snapshot = reward_learner(algo).snapshot()
    assert snapshot.weights.keys() == algo.env_runner.scorer.snapshot.weights.keys()
    for name, weights in snapshot.weights.items():
        np.testing.assert_array_equal(weights, algo.env_runner.scorer.snapshot.weights[name])


def test_restoring_leaves_a_checkpoint_of_another_task_alone(built, tmp_path):
    """Networks of another size: an error, not a mixture."""
    algo = built(keys_config())
    algo.train()
    algo.save_to_path(tmp_path / "checkpoint")
    other = built(keys_config().rl_module(model_config={"encoder_dim": 16, "gru_dim": 8}))
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.restore_from_path(tmp_path / "checkpoint")
