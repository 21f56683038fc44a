"""A value stream of a reward model's own: what is learned from, against sums over single steps."""

import numpy as np
import pytest
from configs import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import learner_of
from ray.rllib.algorithms.appo import APPO
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from tiny import clock_config, plain_config

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
def test_a_batch_is_learned_from_in_both_streams(built, core_dim):
    """Episodes end for the environment's stream, and follow each other in the other one."""
    config = clock_config(WholeEpisodePPOConfig, core_dim=core_dim)
    config.episodes(per_minibatch=8).training(num_epochs=1, lr=0.0, gamma=0.9, lambda_=0.8)
    config.rewards(models={"rnd": {"dim": 4, "own_stream": True, "gamma": 0.7}})
    algo = built(config)
    learner = learner_of(algo)
    kept, original = {}, learner.compute_losses
    pipeline = learner._learner_connector.connectors[-1]
    connect = type(pipeline).__call__

    def spy_connector(self, **kwargs):
        batch = connect(self, **kwargs)
        kept["lengths"] = [len(e) - 1 for e in kwargs["episodes"]]
        kept["batch"] = {k: _numpy(v) for k, v in batch["default_policy"].items()}
        kept["values"] = [_numpy(v) for v in self_policy().both_values(batch["default_policy"])]
        return batch

    def self_policy():
        return learner.module["default_policy"].unwrapped()

    def spy(*, fwd_out, batch):
        kept["seen"] = OWN_TARGETS in batch["default_policy"]
        return original(fwd_out=fwd_out, batch=batch)

    learner.compute_losses = spy
    type(pipeline).__call__ = spy_connector
    try:
        algo.train()  # nothing is paid before the first snapshot
        result = algo.train()
    finally:
        type(pipeline).__call__ = connect
    assert kept["seen"] and result["learners"]["default_policy"]["own_vf_loss"] > 0
    batch, lengths = kept["batch"], kept["lengths"]
    value, second = ([*_episodes(v, batch, lengths)] for v in kept["values"])
    rewards = [*_episodes(batch[Columns.REWARDS], batch, lengths)]
    own = [*_episodes(batch["own_rewards"], batch, lengths)]
    assert sum(part.sum() for part in own) > 0
    # The environment's stream, episode by episode; those of odd length were cut off.
    first = []
    for v, r, n in zip(value, rewards, lengths, strict=True):
        after = v[n] if n % 2 else 0.0
        first.append(endless_advantages(v[:n], r[:n], after=after, gamma=0.9, lambda_=0.8))
    # The other one, through all of them.
    joined = np.concatenate([v[:n] for v, n in zip(second, lengths, strict=True)])
    paid = np.concatenate([r[:n] for r, n in zip(own, lengths, strict=True)])
    again = np.mean([v[0] for v in second])
    other = endless_advantages(joined, paid, after=again, gamma=0.7, lambda_=0.8)
    targets = np.concatenate(
        [v[:n] for v, n in zip(_episodes(batch[OWN_TARGETS], batch, lengths), lengths, strict=True)]
    )
    np.testing.assert_allclose(targets, joined + other, rtol=1e-4, atol=1e-4)
    found = np.concatenate(
        [
            a[:n]
            for a, n in zip(
                _episodes(batch[Postprocessing.ADVANTAGES], batch, lengths), lengths, strict=True
            )
        ]
    )
    both = np.concatenate(first) + other
    # Up to shift and scale, which are those of all advantages together.
    a, b = (x - x.mean() for x in (found, both))
    np.testing.assert_allclose(a / a.std(), b / b.std(), rtol=1e-3, atol=1e-3)


def _numpy(value):
    return value if isinstance(value, dict) else value.detach().cpu().numpy()


def _episodes(values, batch, lengths):
    """Each episode's part, with the step that RLlib adds."""
    if batch[Columns.REWARDS].ndim == 2:
        yield from (row[: n + 1] for row, n in zip(values, lengths, strict=True))
        return
    ends = np.cumsum([n + 1 for n in lengths])
    yield from np.split(values, ends[:-1])


def test_there_is_one_stream_and_it_is_for_whole_episodes():
    twice = {"rnd": {"own_stream": True}, "rllib_conspec.reward_models.rnd:RND": {}}
    config = plain_config().rewards(models=twice)
    assert config.own_gamma == 0.99
    assert plain_config().rewards(models={"rnd": {}}).own_gamma is None
    config = with_reward_model(APPO, "rnd").get_default_config().environment("CartPole-v1")
    config.rewards(models={"rnd": {"own_stream": True}})
    assert "WholeEpisodePPO" in str(refused("reward_models", config.validate))
