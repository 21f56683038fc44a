"""Training as a whole: what is learned from and shown, what checkpoints hold, what breaks it."""

import copy
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import ray
from tiny import (
    LostMarbles,
    broken_success,
    clock_config,
    keys_config,
    make_prototypes_pay,
    plain_config,
    reached_fifty,
    reward_learner,
)

from rllib_conspec import ConSpec
from rllib_conspec.algorithm.algorithm import WorkersLost
from rllib_conspec.retrospection.memory import StoredEpisode


@pytest.fixture
def built(ray_local):
    """Builds algorithms, and stops them at the end of the test."""
    running = []

    def build(config):
        running.append(config.build_algo())
        return running[-1]

    yield build
    for algo in running:
        algo.stop()


def trained_on(algo):
    """One iteration: (episodes that the RL update got, result)."""
    given, original = [], algo.learner_group.update

    def spy(*args, episodes, **kwargs):
        given.extend(copy.deepcopy(episodes))  # the learner lengthens and renames its own
        return original(*args, episodes=episodes, **kwargs)

    algo.learner_group.update = spy
    try:
        result = algo.train()
    finally:
        algo.learner_group.update = original
    return given, result


def learners_own_reward(algo, episode):
    """What the learner's side itself would pay for an episode, without any worker or broadcast."""
    model = algo.config.get_reward_model()
    scorer = model.scorer(episode.get_observations().shape[1:])
    scorer.load(reward_learner(algo).snapshot())
    (reward,) = scorer.reward([StoredEpisode.of(episode.get_observations()[1:], False)])
    return reward


# --- what people see, and what is learned from --------------------------------------------------


@pytest.mark.parametrize("intrinsic", ["window", "potential"])
def test_shown_returns_are_extrinsic_and_learned_rewards_hold_both(built, intrinsic):
    """Coefficient 100: an intrinsic reward that got into a shown return could not be overlooked."""
    algo = built(keys_config(intrinsic=intrinsic, threshold=0.0, intrinsic_coeff=100.0))
    make_prototypes_pay(algo)
    expected = {}
    original = algo.env_runner._pay

    def pay(episodes):
        for e in episodes:
            expected[e.id_] = e.get_rewards() + learners_own_reward(algo, e)
            expected[e.id_, "extrinsic"] = e.get_return()
        return original(episodes)

    algo.env_runner._pay = pay
    episodes, result = trained_on(algo)
    assert len(episodes) == 8
    for episode in episodes:
        np.testing.assert_allclose(episode.get_rewards(), expected[episode.id_], atol=1e-3)

    shown = result["env_runners"]
    extrinsic = [expected[e.id_, "extrinsic"] for e in episodes]
    assert shown["episode_return_mean"] == pytest.approx(np.mean(extrinsic))
    assert 0 <= shown["episode_return_min"] <= shown["episode_return_max"] <= 1
    paid = [e.get_return() - x for e, x in zip(episodes, extrinsic, strict=True)]
    assert abs(np.mean(paid)) > 1
    assert shown["intrinsic_return_mean"] == pytest.approx(np.mean(paid), rel=1e-3)


def test_pay_all_pays_before_anything_is_frozen(built):
    algo = built(keys_config(pay="all", threshold=0.0, freeze_after=1000))
    first = algo.train()
    second = algo.train()
    assert first["env_runners"]["intrinsic_return_mean"] == 0, "paid by untrained prototypes"
    assert second["env_runners"]["intrinsic_return_mean"] != 0
    assert second["conspec"]["frozen"] == 0


def test_results_have_what_is_promised(built):
    result = built(keys_config()).train()
    assert result["training_iteration"] == 1
    assert result["num_env_steps_sampled_lifetime"] >= 8 * 50
    assert 0 <= result["env_runners"]["success_rate"] <= 1
    assert {
        "successes",
        "failures",
        "frozen",
        "prototypes",
        "loss",
        "version",
        "separation",
    } <= set(result["conspec"])
    assert set(result["conspec"]["separation"]) == {"0", "1", "2"}
    phases = {"sample", "score", "gather", "rl_update", "conspec_step", "broadcast", "iteration"}
    assert phases <= set(result["seconds"])
    seconds = result["seconds"]
    assert seconds["iteration"] >= seconds["rl_update"] + seconds["sample"] > 0


def test_metrics_are_of_the_iteration_alone(built):
    """Success rate and intrinsic return are not smoothed over earlier iterations."""
    algo = built(keys_config())
    reports, original = [], algo._log_episodes
    algo._log_episodes = lambda new: (reports.append(new), original(new))
    for _ in range(3):
        result = algo.train()
        paid = [x for report in reports[-1] for x in report.intrinsic_returns]
        assert result["env_runners"]["intrinsic_return_mean"] == pytest.approx(np.mean(paid))
        assert result["env_runners"]["success_rate"] == 2 / 8  # top_k of 2
        assert result["conspec"]["version"] == result["training_iteration"]


def test_plain_ppo_learns_from_the_environments_rewards(built):
    episodes, result = trained_on(built(plain_config()))
    assert {e.get_return() for e in episodes} <= {0.0, 1.0}
    assert result["env_runners"]["success_rate"] == result["env_runners"]["episode_return_mean"]
    assert "conspec" not in result


# --- evaluation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("own_workers", [True, False])
def test_evaluation_is_unpaid_and_stays_out_of_the_memories(built, own_workers):
    config = keys_config(threshold=0.0, intrinsic_coeff=100.0, memory_size=64, memory_batch=4)
    if own_workers:
        config.evaluation(evaluation_interval=1000, evaluation_num_env_runners=0)
    config.evaluation(evaluation_duration=4, evaluation_duration_unit="episodes")
    algo = built(config)
    algo.train()
    make_prototypes_pay(algo)
    before = memories(algo)
    result = algo.evaluate()["env_runners"]
    assert result["num_episodes"] >= 4
    assert 0 <= result["episode_return_min"] <= result["episode_return_max"] <= 1
    assert memories(algo) == before
    result = algo.train()
    batch = sum(memories(algo)["counts"]) - sum(before["counts"])
    assert batch <= 8, "evaluation episodes were learned from"


# --- seeds and checkpoints ----------------------------------------------------------------------

# Words in the names of times, of process identities and of counters that begin anew on purpose.
VOLATILE = {
    "time",
    "timer",
    "timers",
    "timestamp",
    "seconds",
    "sec",
    "throughput",
    "date",
    "duration",
}
VOLATILE |= {"pid", "hostname", "ip", "perf", "restore", "trial", "config"}


def comparable(result, prefix=""):
    """All numbers of a result that must not depend on when and where it was computed."""
    found = {}
    for key, value in result.items():
        name = f"{prefix}{key}"
        if VOLATILE & set(str(key).split("_")):
            continue
        if isinstance(value, dict):
            found |= comparable(value, f"{name}/")
        elif isinstance(value, (int, float, np.number)):
            found[name] = repr(float(value))
    return found


def memories(algo):
    """Everything that the reward model keeps, in a form that compares by value."""
    model = reward_learner(algo)
    keep = [model.successes, model.failures]
    for i in sorted(model.exemplars):
        keep += [model.exemplars[i].successes, model.exemplars[i].failures]
    return {
        "episodes": [[e.frames.tobytes() for e in group] for group in keep],
        "counts": (len(model.successes), len(model.failures)),
        "exemplars": sorted(model.exemplars),
        "met": model.met.tolist(),
        "streak": model.streak.tolist(),
        "version": model.version,
        "weights": {k: v.tolist() for k, v in model.model.state_dict().items()},
        "optimizer": [
            {k: v.tolist() for k, v in state.items()} for state in model.optimizer.state.values()
        ],
    }


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
from test_algorithm import comparable, memories
from rllib_conspec import ConSpec

ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
algo = ConSpec.from_checkpoint(sys.argv[1])
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


# --- exceptions ---------------------------------------------------------------------------------


def train_until_error(algo, expected, limit=60.0):
    start = time.monotonic()
    with pytest.raises(expected) as caught:
        for _ in range(20):
            algo.train()
    assert time.monotonic() - start < limit
    return caught.value


def test_an_exception_in_the_environment_ends_training(built):
    error = train_until_error(built(clock_config(raise_at=100)), LostMarbles)
    assert "the clock broke at call 101" in str(error)


def test_an_exception_in_a_success_function_ends_training(built):
    error = train_until_error(built(keys_config(success="tiny:broken_success")), LostMarbles)
    assert "no idea what success is" in str(error)


def test_an_exception_in_the_learner_ends_training(built):
    algo = built(keys_config())
    reward_learner(algo).step = lambda: 1 / 0
    train_until_error(algo, ZeroDivisionError)


# --- remote workers -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(ray_local):
    """Two remote workers that share seven episodes, memories that forget nothing."""
    config = keys_config(
        runners=2, threshold=0.0, memory_size=500, memory_batch=4, freeze_after=1000
    )
    config.episodes(per_batch=7, per_minibatch=1).fault_tolerance(
        delay_between_env_runner_restarts_s=1.0
    )
    algo = config.build_algo()
    yield algo
    algo.stop()


def on_workers(algo, function):
    """{worker index: result} of all healthy remote workers."""
    found = algo.env_runner_group.foreach_env_runner(
        lambda runner: (runner.worker_index, function(runner)), local_env_runner=False
    )
    return dict(found)


def wait_for_all(algo, check=lambda episodes, result: None, limit=180.0):
    """Train until both workers take part again; the result of that iteration."""
    deadline = time.monotonic() + limit
    while True:
        episodes, result = trained_on(algo)
        check(episodes, result)
        if len(episodes) == 7:
            return result
        assert time.monotonic() < deadline, "the worker did not come back"
        time.sleep(1.0)


def test_remote_workers_share_the_batch(pair):
    episodes, result = trained_on(pair)
    assert len(episodes) == 7
    assert all(e.is_done for e in episodes)
    assert result["env_runners"]["num_episodes"] == 7
    held = memories(pair)
    assert sum(held["counts"]) == 7
    assert sorted(f for g in held["episodes"] for f in g) == sorted(
        e.get_observations()[1:].tobytes() for e in episodes
    )


@pytest.mark.parametrize("form", ["window", "potential"])
def test_remote_workers_pay_what_the_learner_would(pair, form):
    """Read off the rewards that the RL update gets; the task itself pays only on the last step."""

    def use_form(scorer):
        scorer.options = dataclasses.replace(scorer.options, intrinsic=form)

    pair.env_runner_group.foreach_env_runner(lambda runner: use_form(runner.scorer))
    make_prototypes_pay(pair)
    snapshot = reward_learner(pair).snapshot()
    versions = on_workers(pair, lambda runner: runner.scorer.version)
    assert versions == {1: snapshot.version, 2: snapshot.version}
    scorer = pair.config.get_reward_model().scorer((5, 5, 3))
    use_form(scorer)
    scorer.load(snapshot)
    episodes, result = trained_on(pair)
    paid = []
    for episode in episodes:
        frames = episode.get_observations()[1:]
        (expected,) = scorer.reward([StoredEpisode.of(frames, False)])
        np.testing.assert_allclose(episode.get_rewards()[:-1], expected[:-1], atol=1e-6)
        extrinsic = episode.get_rewards()[-1] - expected[-1]
        assert min(abs(extrinsic), abs(extrinsic - 1)) < 1e-5
        paid.append(expected.sum())
    assert np.abs(paid).max() > 0
    assert result["env_runners"]["intrinsic_return_mean"] == pytest.approx(np.mean(paid), rel=1e-4)
    assert result["env_runners"]["episode_return_max"] <= 1


def test_snapshots_are_broadcast_every_iteration(pair):
    for _ in range(2):
        version = pair.train()["conspec"]["version"]
        assert on_workers(pair, lambda r: r.scorer.version) == {1: version, 2: version}
        assert pair.env_runner.scorer.version == version


def test_a_worker_killed_in_mid_iteration(pair):
    """Training goes on, memories keep everything, the new worker pays with the right snapshot."""
    make_prototypes_pay(pair)
    result = pair.train()
    before, steps = memories(pair), result["num_env_steps_sampled_lifetime"]
    pids = on_workers(pair, lambda runner: os.getpid())
    os.kill(pids[1], signal.SIGSTOP)  # it cannot finish its episodes before it is killed
    killer = threading.Timer(2.0, os.kill, (pids[1], signal.SIGKILL))
    killer.start()
    start = time.monotonic()
    episodes, result = trained_on(pair)
    killer.join()
    assert time.monotonic() - start > 1.5, "the iteration was over before the kill"
    assert len(episodes) == 3, "the other worker's share"
    seen = {"steps": steps, "count": sum(before["counts"])}

    def check(episodes, result):
        now = memories(pair)
        for old, new in zip(before["episodes"], now["episodes"], strict=True):
            assert new[: len(old)] == old, "something stored was lost"
        assert sum(now["counts"]) == seen["count"] + len(episodes)
        assert result["num_env_steps_sampled_lifetime"] > seen["steps"]
        # Whoever played, was paid: every prototype pays from a score of 0 on.
        assert all(np.abs(e.get_rewards()[:-1]).sum() > 0 for e in episodes)
        seen.update(count=sum(now["counts"]), steps=result["num_env_steps_sampled_lifetime"])

    check(episodes, result)
    result = wait_for_all(pair, check)
    new = on_workers(pair, lambda runner: os.getpid())
    assert new[2] == pids[2]
    assert new[1] != pids[1]
    version = result["conspec"]["version"]
    assert on_workers(pair, lambda r: r.scorer.version) == {1: version, 2: version}


def test_a_worker_killed_between_iterations(pair):
    version = pair.train()["conspec"]["version"]
    pids = on_workers(pair, lambda runner: os.getpid())
    os.kill(pids[2], signal.SIGKILL)
    results = [pair.train() for _ in range(2)]
    assert [r["conspec"]["version"] for r in results] == [version + 1, version + 2]
    assert all(r["env_runners"]["num_episodes"] >= 3 for r in results)


def test_an_exception_in_a_remote_worker_ends_training(pair):
    """RLlib itself would restart the worker for ever, and go on with nothing sampled."""
    wait_for_all(pair)

    def use(success):
        pair.env_runner_group.foreach_env_runner(
            lambda runner: setattr(runner, "_success", success),
            local_env_runner=False,
            healthy_only=False,
        )

    use(broken_success)
    error = train_until_error(pair, LostMarbles)
    assert "no idea what success is" in str(error)
    assert any("rollout worker" in note for note in error.__notes__), "which worker is not said"
    # A program that catches it, mends the cause and trains on, can.
    use(reached_fifty)
    assert wait_for_all(pair)["env_runners"]["num_episodes"] == 7


def test_all_workers_gone_is_an_error_in_the_end(pair):
    """Not silent iterations with nothing in them. Comes last: nobody is left afterwards."""
    wait_for_all(pair)
    pair.config._is_frozen = False
    pair.config.worker_timeout_s = 0.5
    before = memories(pair)
    for pid in on_workers(pair, lambda runner: os.getpid()).values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkersLost, match="worker_timeout_s"):
        pair.train()
    assert memories(pair) == before


def test_checkpoints_of_the_right_class(built, tmp_path):
    algo = built(keys_config())
    algo.save_to_path(tmp_path / "checkpoint")
    assert any(Path(tmp_path / "checkpoint").iterdir())
    twin = ConSpec.from_checkpoint(tmp_path / "checkpoint")
    try:
        assert type(twin) is ConSpec
        assert twin.config.get_reward_model().options == algo.config.get_reward_model().options
    finally:
        twin.stop()
