"""Algorithms that never wait: reward models learn beside them, at their own pace."""

import threading
import time

import pytest
import ray
from inside import on_learners, on_workers
from ray.rllib.algorithms.appo import APPO
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from tiny import CONSTANT, PATIENT, Clock, LostMarbles, Patient

from rllib_conspec import with_reward_model
from rllib_conspec.algorithm.env_runner import COMPONENT_SNAPSHOT, REPORT


@pytest.fixture
def held_up():
    """The reward model takes for ever, until the test lets it go on."""
    Patient.let.clear()
    Patient.begun.clear()
    yield Patient
    Patient.let.set()


def appo_config(model=CONSTANT, *, base=APPO, runners=0, learners=0, **options):
    config = with_reward_model(base, model).get_default_config()
    config.environment(Clock, env_config={"lengths": (5,)})
    config.env_runners(num_env_runners=runners, num_envs_per_env_runner=4)
    config.env_runners(rollout_fragment_length=5)
    config.learners(num_learners=learners)
    config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=80)
    config.training(train_batch_size_per_learner=40).debugging(seed=1)
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    return config.rewards(models={model: {"step": 1.0} | options}, episodes_per_update=4)


def train_until(algo, reached, limit=200):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        result = algo.train()
        if reached(result):
            return result
    raise AssertionError("not reached")


def trained(result):
    return result["learners"].get("default_policy", {}).get("num_module_steps_trained_lifetime", 0)


@pytest.mark.parametrize("base", [APPO, IMPALA])
def test_sampling_and_learning_go_on_while_the_reward_model_learns(built, held_up, base):
    algo = built(appo_config(PATIENT, base=base))
    train_until(algo, lambda _: held_up.begun.is_set())
    before = algo.train()
    # Many batches are sampled and learned from; the one update has not ended.
    after = train_until(algo, lambda r: trained(r) > trained(before) + 100)
    assert after["num_env_steps_sampled_lifetime"] > before["num_env_steps_sampled_lifetime"]
    assert algo.env_runner.reward_model.version == 0
    assert after["env_runners"]["intrinsic_return_mean"] == 0
    assert "patient" not in after
    held_up.let.set()
    last = train_until(algo, lambda r: r["env_runners"]["intrinsic_return_mean"] > 0)
    assert last["patient"]["nested"]["updates"] >= 1
    assert last["seconds"]["reward_model"] >= 0
    assert algo.env_runner.reward_model.version >= 1


def test_all_that_ended_meanwhile_is_chosen_from(built, held_up):
    algo = built(appo_config(PATIENT))
    train_until(algo, lambda _: held_up.begun.is_set())
    for _ in range(3):
        algo.train()
    held_up.let.set()
    result = train_until(algo, lambda r: r.get("patient", {}).get("nested", {}).get("updates") == 2)
    assert result["patient"]["episodes"] >= 3 * 80 / 5


def test_a_saved_state_holds_whole_updates(built, held_up):
    algo = built(appo_config(PATIENT))
    train_until(algo, lambda _: held_up.begun.is_set())
    threading.Timer(0.5, held_up.let.set).start()
    state = algo.get_state()["learner_group"]["learner"]["reward_model"]
    assert state["version"] == state["models"][PATIENT]["updates"] == 1


def test_an_exception_in_the_reward_model_ends_training(built):
    algo = built(appo_config(broken=True))
    with pytest.raises(LostMarbles, match="cannot learn"):
        train_until(algo, lambda _: False)


def test_remote_workers_and_learners(built):
    """Pay reaches the workers, reports come with samples, and learners stay equal."""
    algo = built(appo_config(runners=1, learners=2))
    result = train_until(algo, lambda r: r["env_runners"].get("intrinsic_return_mean", 0) > 0)
    assert result["constant"]["episodes"] >= 4
    versions = on_workers(algo, lambda runner: runner.reward_model.version)
    assert all(version > 0 for version in versions.values())
    updates = on_learners(algo, lambda own: own.reward_model.models[CONSTANT].updates)
    assert max(updates) - min(updates) <= 1, "one may have begun the next"
    # Snapshots go to the workers only: they would come back with every sample.
    ((_, state, _),) = algo.env_runner_group.foreach_env_runner(
        "sample_get_state_and_metrics", local_env_runner=False
    )
    assert COMPONENT_SNAPSHOT not in state
    assert state[REPORT].summaries
    tells_without_waiting(algo)


def tells_without_waiting(algo):
    """A worker that is busy gets the snapshot later; the driver goes on at once."""
    (worker,) = algo.env_runner_group._worker_manager.actors().values()
    busy = worker.apply.remote(lambda runner: time.sleep(5))
    algo._tell_workers({"version": 1234, "models": {CONSTANT: 1234}})
    assert ray.wait([busy], timeout=0)[0] == []
    ray.get(busy)
    assert on_workers(algo, lambda runner: runner.reward_model.version) == {1: 1234}
