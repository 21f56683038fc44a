"""A value stream of a reward model's own: what is learned from, against sums over single steps."""

import numpy as np
import pytest
import torch
from configs import model_of, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.rllib.algorithms.appo import APPO
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from runners import reported, runner_of
from tiny import APART, clock_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig, with_reward_model
from rllib_conspec.algorithm.two_streams import OWN_TARGETS, endless_advantages


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1000),
    steps=st.integers(1, 12),
    gamma=st.floats(0, 1),
    lambda_=st.floats(0, 1),
)
def test_advantages_without_an_end(seed, steps, gamma, lambda_):
    """Σ over k of (γλ)^k δ_t+k, with δ = r + γ V' − V."""
    rng = np.random.default_rng(seed)
    values, rewards, after = rng.normal(size=steps + 1), rng.normal(size=steps), rng.normal()
    values[-1] = after
    expected = []
    for t in range(steps):
        terms = [
            (gamma * lambda_) ** (k - t) * (rewards[k] + gamma * values[k + 1] - values[k])
            for k in range(t, steps)
        ]
        expected.append(sum(terms))
    found = endless_advantages(values[:-1], rewards, after=after, gamma=gamma, lambda_=lambda_)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("core_dim", [0, 8])
def test_a_batch_is_learned_from_in_both_streams(core_dim):
    """Episodes end for the environment's stream, and follow each other in the other one."""
    config = clock_config(WholeEpisodePPOConfig, core_dim=core_dim)
    config.training(gamma=0.9, lambda_=0.8)
    config.rewards(models={"rnd": {"dim": 4, "own_stream": True, "gamma": 0.7}})
    runner = runner_of(config)
    space, actions = runner.env.single_observation_space, runner.env.single_action_space
    learner = runner.config.build_learner(spaces={"default_policy": (space, actions)})
    for _ in range(2):  # nothing is paid before the first snapshot
        episodes = runner.sample()
        report = runner.take_report()
        learner.reward_model.update([({"rnd": None}, e) for e in reported(report)])
        runner.load(learner.reward_model.snapshot())
    assert report.any_reward
    lengths = [len(e) for e in episodes]
    paid = [e.get_extra_model_outputs("own_rewards") for e in episodes]
    assert np.mean(report.intrinsic_returns) == pytest.approx(np.mean([p.sum() for p in paid]))
    policy = learner.module["default_policy"].unwrapped()
    with torch.no_grad():
        policy.own_value.bias += 3.0  # so that it matters what comes after the last step
    batch = learner._learner_connector(
        rl_module=learner.module, batch={}, episodes=episodes, shared_data={}
    )["default_policy"]

    def each(values):
        """Each episode's part, with the step that RLlib adds."""
        values = values.detach().numpy()
        if core_dim:
            return [row[: n + 1] for row, n in zip(values, lengths, strict=True)]
        return np.split(values, np.cumsum([n + 1 for n in lengths])[:-1])

    def real(values):
        return np.concatenate([v[:n] for v, n in zip(each(values), lengths, strict=True)])

    value, second = (each(v) for v in policy.both_values(batch))
    first = []  # the environment's stream, episode by episode; those of odd length were cut off
    for v, r, n in zip(value, each(batch[Columns.REWARDS]), lengths, strict=True):
        after = v[n] if n % 2 else 0.0
        first.append(endless_advantages(v[:n], r[:n], after=after, gamma=0.9, lambda_=0.8))
    joined = np.concatenate([v[:n] for v, n in zip(second, lengths, strict=True)])
    other = endless_advantages(
        joined,
        np.concatenate(paid),
        after=np.mean([v[0] for v in second]),
        gamma=0.7,
        lambda_=0.8,
    )
    np.testing.assert_allclose(real(batch[OWN_TARGETS]), joined + other, rtol=1e-4, atol=1e-4)
    # Up to shift and scale, which are those of all advantages together.
    found, both = real(batch[Postprocessing.ADVANTAGES]), np.concatenate(first) + other
    found, both = found - found.mean(), both - both.mean()
    np.testing.assert_allclose(found / found.std(), both / both.std(), rtol=1e-3, atol=1e-3)


def test_there_is_one_stream_and_it_is_for_whole_episodes():
    assert plain_config().rewards(models={"rnd": {}}).own_gamma is None
    config = plain_config().rewards(models={"rnd": {"own_stream": True}})
    assert config.own_gamma == 0.99
    model_of(config)
    config.rewards(models={APART: {}})
    assert "there is only one" in str(refused(APART, lambda: model_of(config)))
    config = with_reward_model(APPO, "rnd").get_default_config().environment("CartPole-v1")
    config.rewards(models={"rnd": {"own_stream": True}})
    assert "WholeEpisodePPO" in str(refused("reward_models", config.validate))
