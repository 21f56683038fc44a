"""Episodes that a core learns through in pieces, each with the memory that it was played with."""

import pytest
from ray.rllib.core.columns import Columns
from tiny import keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.errors import OptionError


def pieces_config(length, **kwargs):
    config = keys_config(WholeEpisodePPOConfig, success="sparse", **kwargs)
    config.rl_module(model_config={"max_seq_len": length})
    # A learning rate of nothing: in every minibatch the policy is the one that played.
    return config.training(num_epochs=1, lr=1e-12, use_kl_loss=True, kl_coeff=0.0)


@pytest.fixture(autouse=True)
def sensitive(monkeypatch):
    """The first policy is almost uniform, whatever it remembers: let memory matter."""
    monkeypatch.setattr("rllib_conspec.algorithm.policy.orthogonal", lambda layer, gain: layer)


@pytest.mark.parametrize("length", [7, 22, 66, 200])
def test_in_training_the_policy_does_what_it_did_when_it_played(built, length):
    """With another memory at the beginning of a piece it would not: KL is 0."""
    algo = built(pieces_config(length))
    result = algo.train()["learners"]["default_policy"]
    assert abs(result["mean_kl_loss"]) < 1e-9
    assert result["num_module_steps_trained"] >= 8 * 65


def test_without_the_memory_it_would_not(built, monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr("rllib_conspec.algorithm.rollout._states", lambda *_: {})
    algo = built(pieces_config(7))
    assert abs(algo.train()["learners"]["default_policy"]["mean_kl_loss"]) > 1e-6


def test_states_are_kept_only_where_pieces_need_them():
    def kept(config):
        config.validate()
        runner = EpisodeRunner(config=config, worker_index=0, num_workers=0)
        return [Columns.STATE_OUT in e.extra_model_outputs for e in runner.sample()]

    assert all(kept(pieces_config(7)))
    assert not any(kept(pieces_config(66))) and not any(kept(plain_config()))
    without_memory = pieces_config(7).rl_module(model_config={"core_dim": 0})
    assert not any(kept(without_memory))


@pytest.mark.parametrize("length", [0, -3])
def test_pieces_have_a_step_at_least(length):
    with pytest.raises(OptionError, match=r"model_config.max_seq_len: must be a whole number"):
        pieces_config(length).validate()
