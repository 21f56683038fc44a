"""Training as a whole: what is learned from, what is shown, and that errors are not swallowed."""

import numpy as np
import pytest
from tiny import (
    LostMarbles,
    clock_config,
    keys_config,
    learners_own_reward,
    make_prototypes_pay,
    memories,
    plain_config,
    reward_learner,
    train_until_error,
    trained_on,
)

# --- what people see, and what is learned from --------------------------------------------------


@pytest.mark.parametrize("intrinsic", ["window", "potential"])
def test_shown_returns_are_extrinsic_and_learned_rewards_hold_both(built, intrinsic):
    """Coefficient 100: an intrinsic reward that got into a shown return could not be overlooked."""
    algo = built(keys_config(intrinsic=intrinsic, threshold=0.0, intrinsic_coeff=100.0))
    make_prototypes_pay(algo)
    expected, learner = {}, reward_learner(algo)
    original = algo.env_runner._pay

    def pay(episodes):
        for e in episodes:
            extra = learners_own_reward(learner, algo.config.gamma, e, intrinsic)
            expected[e.id_] = e.get_rewards() + extra
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


# --- exceptions ---------------------------------------------------------------------------------


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


def test_success_rate_20_is_the_mean_of_the_last_20_iterations(built):
    """Missing ones count as failures, or one lucky batch would end a run."""
    algo = built(keys_config())
    rates = [algo.train()["env_runners"] for _ in range(23)]
    singles = [r["success_rate"] for r in rates]
    assert sum(singles) > 0
    assert rates[4]["success_rate_20"] == pytest.approx(sum(singles[:5]) / 20)
    assert rates[-1]["success_rate_20"] == pytest.approx(sum(singles[-20:]) / 20)
