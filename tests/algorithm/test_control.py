"""Continuous control through the whole system: two real iterations, normalised observations,
rewards scaled for the policy alone.
"""

import numpy as np
import pytest
import torch
from inside import on_learners
from ray.rllib.algorithms.algorithm import Algorithm
from tiny import EAGER

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.errors import OptionError

STEPS, BATCH = 30, 6


def control_config(config_class=ConSpecConfig, *, robot="Hopper-v5", scale=0.01, **conspec):
    config = (
        config_class()
        .rewards(preset="control", reward_scale=scale)
        .environment("rllib_conspec:DelayedControl-v0", env_config={"robot": robot})
        .episodes(per_batch=BATCH, per_minibatch=3, max_steps=STEPS)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=3)
        .rl_module(model_config={"encoder_dim": 8})
        .debugging(seed=1)
    )
    if config_class is ConSpecConfig:
        config.conspec(**EAGER | conspec)
    return config


def normalizer(network):
    return network.encoder[0]


@pytest.mark.parametrize("robot", ["Hopper-v5", "Walker2d-v5", "HalfCheetah-v5"])
def test_two_iterations(built, robot):
    algo = built(control_config(robot=robot))
    results = [algo.train() for _ in range(2)]
    shown = results[-1]["env_runners"]
    assert shown["num_episodes_lifetime"] == 2 * BATCH
    assert shown["episode_len_max"] <= STEPS
    assert np.isfinite(results[-1]["conspec"]["loss"])
    assert "success_rate" not in shown  # the best of a batch succeed: always as many

    def successes(learner):
        memory = learner.reward_model.models["conspec"].learner.memory
        kinds = (memory.successes, memory.failures)
        return [[float(e.rest.rewards.sum()) for e in kind] for kind in kinds]

    ((won, lost),) = on_learners(algo, successes)
    # The best two of the last batch are the newest successes: none of its failures is better.
    assert len(won) == 4 and min(won[-2:]) >= max(lost[-(BATCH - 2) :])


def test_returns_and_ranking_are_the_environments_and_the_policy_learns_from_scaled_rewards():
    def sampled(scale):
        config = control_config(scale=scale)
        config.validate()
        runner = EpisodeRunner(config=config, worker_index=0, num_workers=0)
        episodes = runner.sample()
        return [e.get_rewards() for e in episodes], runner.get_metrics(), runner.take_report()

    raw, metrics, report = sampled(1.0)
    small, small_metrics, small_report = sampled(0.01)
    signs, *_ = sampled("sign")
    assert max(np.abs(r).max() for r in raw) > 1
    for a, b, c in zip(raw, small, signs, strict=True):
        np.testing.assert_allclose(b, 0.01 * a, rtol=1e-5)
        np.testing.assert_array_equal(c, np.sign(a))
    assert metrics["episode_return_mean"].peek() == small_metrics["episode_return_mean"].peek()
    assert report.summaries == small_report.summaries
    assert [s.extrinsic_return for s in report.summaries] == pytest.approx([r.sum() for r in raw])


def test_without_reward_models_rewards_are_scaled_too():
    config = control_config(WholeEpisodePPOConfig, scale="sign")
    config.validate()
    runner = EpisodeRunner(config=config, worker_index=0, num_workers=0)
    episodes = runner.sample()
    returns = [s.extrinsic_return for s in runner.take_report().summaries]
    rewards = np.concatenate([e.get_rewards() for e in episodes])
    assert set(np.unique(rewards)) <= {-1.0, 0.0, 1.0}
    assert any(abs(r - round(r)) > 0.01 for r in returns)  # no sums of signs


@pytest.mark.parametrize("scale", [0, -1.0, "signs", True])
def test_a_scale_that_makes_no_sense_is_refused(scale):
    with pytest.raises(OptionError, match="reward_scale: must be a number above 0 or sign"):
        control_config(scale=scale).validate()


def test_policy_worker_and_prototypes_normalise_by_what_was_played(built, tmp_path):
    algo = built(control_config(threshold=0.0))
    for _ in range(2):
        result = algo.train()
    steps = result["env_runners"]["num_env_steps_sampled_lifetime"]

    def held(algorithm):
        def look(learner):
            policy = learner.module["default_policy"]
            conspec = learner.reward_model.models["conspec"].learner.model
            return [normalizer(network).state_dict() for network in (policy, conspec)]

        return on_learners(algorithm, look)[0]

    policy, conspec = held(algo)
    assert float(policy["count"]) == steps + 2 * BATCH  # an episode has one more observation
    assert float(conspec["count"]) == steps
    assert policy["mean"].abs().max() > 0.1
    # Who acts, and who pays, reads observations as the one who learns.
    assert _equal(normalizer(algo.env_runner.module).state_dict(), policy)
    assert result["conspec"]["frozen"] > 0
    scorer = algo.env_runner.reward_model.models["conspec"].scorer
    assert _equal(normalizer(scorer._model).state_dict(), conspec)
    # And so does who is restored.
    algo.save_to_path(tmp_path / "checkpoint")
    twin = Algorithm.from_checkpoint(tmp_path / "checkpoint")
    try:
        assert all(map(_equal, held(twin), (policy, conspec)))
        assert _equal(normalizer(twin.env_runner.module).state_dict(), policy)
    finally:
        twin.stop()


def _equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k].cpu(), b[k].cpu()) for k in a)


def test_the_policy_that_is_updated_is_the_one_that_played(built):
    """Moments change after the update: its first ratios of probabilities are 1."""
    config = control_config(WholeEpisodePPOConfig)
    config.training(num_epochs=1, lr=1e-12, use_kl_loss=True, kl_coeff=0.0)
    algo = built(config)
    for _ in range(3):
        result = algo.train()
    assert abs(result["learners"]["default_policy"]["mean_kl_loss"]) < 1e-6
