"""Training as a whole: what is learned from, what is shown, and that errors are not swallowed."""

from unittest.mock import patch

import numpy as np
import pytest
import xxhash
from inside import (
    learner_of,
    learners_own_reward,
    make_prototypes_pay,
    memories,
    reports_seen,
    reward_learner,
    train_until_error,
    trained_on,
    version_of,
)
from ray.rllib.callbacks.callbacks import RLlibCallback
from tiny import CONSTANT, LostMarbles, clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.report import episodes_at

# --- what people see, and what is learned from --------------------------------------------------


@pytest.mark.parametrize("intrinsic", ["window", "potential"])
def test_shown_returns_are_extrinsic_and_learned_rewards_hold_both(built, intrinsic):
    """Coefficient 100: an intrinsic reward that got into a shown return could not be overlooked."""
    config = keys_config(intrinsic=intrinsic, threshold=0.0, intrinsic_coeff=100.0)
    # A model that learns moves its prototypes after the batch: they would pay otherwise.
    algo = built(config.conspec(lr=1e-30, freeze_after=1000))
    make_prototypes_pay(algo)
    with reports_seen() as seen:
        episodes, result = trained_on(algo)
    (report,) = seen[0]
    untouched = [e for _, e in episodes_at((None, p) for p in report.episodes)]
    assert len(episodes) == len(untouched) == 8
    for episode, plain in zip(episodes, untouched, strict=True):
        extra = learners_own_reward(reward_learner(algo), algo.config.gamma, episode, intrinsic)
        np.testing.assert_allclose(episode.get_rewards(), plain.rewards + extra, atol=1e-3)

    shown = result["env_runners"]
    extrinsic = [plain.rewards.sum() for plain in untouched]
    assert shown["episode_return_mean"] == pytest.approx(np.mean(extrinsic))
    assert 0 <= shown["episode_return_min"] <= shown["episode_return_max"] <= 1
    paid = [e.get_return() - x for e, x in zip(episodes, extrinsic, strict=True)]
    assert abs(np.mean(paid)) > 1
    assert shown["intrinsic_return_mean"] == pytest.approx(np.mean(paid), rel=1e-3)


def test_the_papers_form_pays_before_anything_is_frozen(built):
    algo = built(keys_config(form="paper", threshold=0.0, freeze_after=1000))
    first = algo.train()
    second = algo.train()
    assert first["env_runners"]["intrinsic_return_mean"] == 0, "paid by untrained prototypes"
    assert second["env_runners"]["intrinsic_return_mean"] != 0
    assert second["conspec"]["frozen"] == 0


def test_results_have_what_is_promised(built):
    result = built(keys_config(success="sparse")).train()
    assert result["training_iteration"] == 1
    assert result["num_env_steps_sampled_lifetime"] >= 8 * 50
    assert 0 <= result["env_runners"]["success_rate"] <= 1
    assert {"successes", "failures", "frozen", "prototypes"} <= set(result["conspec"])
    assert list(result["hints"]) == []
    phases = {"sample", "score", "rl_update", "reward_model", "iteration"}
    assert phases == set(result["seconds"])
    seconds = result["seconds"]
    parts = sum(seconds[phase] for phase in phases - {"iteration"})
    assert seconds["iteration"] >= 0.9 * parts > 0


def test_metrics_of_learning_prototypes(built):
    result = built(keys_config()).train()
    assert {"loss", "separation"} <= set(result["conspec"])
    assert set(result["conspec"]["separation"]) == {"0", "1", "2"}


def test_metrics_are_of_the_iteration_alone(built):
    """Success rate and intrinsic return are not smoothed over earlier iterations."""
    algo = built(keys_config(success="sparse"))
    with reports_seen() as reports:
        for _ in range(3):
            shown = algo.train()["env_runners"]
            (report,) = reports[-1]
            assert shown["intrinsic_return_mean"] == pytest.approx(
                np.mean(report.intrinsic_returns)
            )
            assert shown["success_rate"] == np.mean([s.success for s in report.summaries])
            assert shown["success_rate"] == shown["episode_return_mean"]
    assert version_of(algo) == 3


@pytest.mark.parametrize("config", [keys_config, plain_config])
def test_where_success_is_relative_there_is_no_success_rate(built, config):
    """It would be the same number for ever."""
    shown = built(config(success="top_k")).train()["env_runners"]
    assert shown["num_episodes"] == 8
    assert not {"success_rate", "success_rate_20"} & set(shown)


@pytest.mark.parametrize("success", ["sparse", "goal", "tiny:reached_fifty"])
def test_success_is_counted_alike_with_and_without_a_reward_model(built, success):
    """The first batch is the same one."""
    rates = [
        built(config(success=success, seed=4)).train()["env_runners"]["success_rate"]
        for config in (keys_config, plain_config)
    ]
    assert rates[0] == rates[1]
    if success == "tiny:reached_fifty":
        assert rates[0] == 1.0


def test_success_rate_20_is_the_mean_of_the_last_20_iterations(built):
    algo = built(keys_config(success="sparse"))
    rates = [algo.train()["env_runners"] for _ in range(22)]
    singles = [r["success_rate"] for r in rates]
    assert sum(singles) > 0
    assert rates[4]["success_rate_20"] == pytest.approx(sum(singles[:5]) / 20)
    assert rates[-1]["success_rate_20"] == pytest.approx(sum(singles[-20:]) / 20)


def test_plain_ppo_learns_from_the_environments_rewards_and_hashes_nothing(built):
    with patch.object(xxhash, "xxh3_64_intdigest", wraps=xxhash.xxh3_64_intdigest) as hashing:
        episodes, result = trained_on(built(plain_config()))
        assert hashing.call_count == 0
        built(keys_config()).train()
        assert hashing.call_count > 0
    assert {e.get_return() for e in episodes} <= {0.0, 1.0}
    assert result["env_runners"]["success_rate"] == result["env_runners"]["episode_return_mean"]
    assert "conspec" not in result
    assert "reward_model" not in result["seconds"]


# --- several models -----------------------------------------------------------------------------


def test_models_pay_together_and_have_sections_of_their_own(built):
    config = keys_config(threshold=0.0).rewards(models={CONSTANT: {"step": 1.0, "first": 10.0}})
    algo = built(config)
    first = algo.train()
    make_prototypes_pay(algo)
    assert first["constant"] == {"episodes": 8, "nested": {"updates": 1}}
    assert "loss" in first["conspec"]
    assert "constant: pays whatever happens" in first["hints"]
    assert first["env_runners"]["intrinsic_return_mean"] == 0
    with reports_seen() as seen:
        episodes, second = trained_on(algo)
    (report,) = seen[0]
    assert second["constant"] == {"episodes": 8, "nested": {"updates": 2}}
    untouched = [e for _, e in episodes_at((None, p) for p in report.episodes)]
    above = 0.0
    for episode, plain in zip(episodes, untouched, strict=True):
        gained = episode.get_rewards() - plain.rewards
        gained[0] -= 10.0
        above += (gained - 1.0).sum()
        assert (gained > 1.0 - 1e-5).all()  # what ConSpec pays in this form is never negative
    assert above > 0, "ConSpec paid nothing"


def test_a_model_chooses_what_it_learns_from(built):
    """ConSpec takes at most two successes and four failures; the other model gets all eight."""
    config = keys_config(max_new_successes=1).rewards(models={CONSTANT: {}})
    algo = built(config)
    algo.train()
    held = reward_learner(algo)
    assert held.memory.count == (1, 4)
    assert len(learner_of(algo).reward_model.models[CONSTANT].given) == 8


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


# --- batches with nothing in them -----------------------------------------------------------------


class Watching(RLlibCallback):
    """Does nothing, but has to be called: so RLlib's own loop plays, which repeats no episode."""


@pytest.mark.parametrize("config_class", [None, WholeEpisodePPOConfig])
def test_a_batch_in_which_no_episode_was_finished(built, config_class):
    """All environments broke down: nothing to learn from, and training goes on."""
    arguments = () if config_class is None else (config_class,)
    config = clock_config(*arguments, lengths=(20,), drop_at=5).callbacks(callbacks_class=Watching)
    algo = built(config)
    for _ in range(2):
        result = algo.train()
    assert result["env_runners"]["num_episodes_dropped_lifetime"] >= 16
    assert "success_rate" not in result["env_runners"]


# --- exceptions ---------------------------------------------------------------------------------


def test_an_exception_in_the_environment_ends_training(built):
    error = train_until_error(built(clock_config(lengths=(20,), raise_at=600)), LostMarbles)
    assert "the clock broke at call 601" in str(error)


def test_an_exception_in_a_success_function_ends_training(built):
    error = train_until_error(built(keys_config(success="tiny:broken_success")), LostMarbles)
    assert "no idea what success is" in str(error)


def test_an_exception_in_a_reward_model_comes_at_once(built):
    """Only a trial of Tune first saves what there is."""
    algo = built(plain_config().rewards(models={CONSTANT: {"broken": True}}))
    with pytest.raises(LostMarbles, match="cannot learn"):
        algo.train()
