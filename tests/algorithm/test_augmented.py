"""PPO on changed observations: its ratio begins at 1, and nothing else is changed."""

import pytest
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_conspec.algorithm.augmented import Augmented
from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.auxiliary.curl import CURL, CURLOptions
from rllib_conspec.auxiliary.distil import Distil, DistilOptions
from rllib_conspec.auxiliary.rad import RAD, RADOptions


def policy_of(core_dim, seed=0):
    torch.manual_seed(seed)
    return RLModuleSpec(
        module_class=EpisodePolicy,
        observation_space=spaces.Box(0, 255, (5, 5, 3), "uint8"),
        action_space=spaces.Discrete(4),
        model_config={"encoder_dim": 8, "core_dim": core_dim},
    ).build()


def batch_of(core_dim):
    shape = (6, 4) if core_dim else (6,)
    batch = {
        Columns.OBS: torch.randint(256, (*shape, 5, 5, 3), dtype=torch.uint8),
        Columns.ACTIONS: torch.randint(4, shape),
        Columns.ACTION_LOGP: torch.full(shape, -1.0),
        Columns.ACTION_DIST_INPUTS: torch.zeros(*shape, 4),
        "rest": torch.ones(shape),
    }
    return batch | ({Columns.STATE_IN: {"h": torch.zeros(6, core_dim)}} if core_dim else {})


def moved(policy):
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)


def log_probabilities(policy, batch):
    inputs = policy.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    return inputs.log_softmax(-1).gather(-1, batch[Columns.ACTIONS][..., None])[..., 0]


@pytest.mark.parametrize("core_dim", [0, 8])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_policy_that_played_is_asked_about_what_is_learned_from(core_dim, epsilon):
    policy, batch = policy_of(core_dim), batch_of(core_dim)
    moved(policy)  # or all actions would be as likely
    augmented = Augmented([RAD(RADOptions(), policy.encoder)], epsilon)
    augmented.begin(policy)
    seen = augmented(batch)
    assert not torch.equal(seen[Columns.OBS], batch[Columns.OBS])
    assert seen["rest"] is batch["rest"]
    here, there = log_probabilities(policy, seen), log_probabilities(policy, batch)
    assert (here - there).abs().max() > 0.01, "the change moves the policy: there is a difference"
    expected = torch.log((1 - epsilon) * here.exp() + epsilon / 4)
    torch.testing.assert_close(seen[Columns.ACTION_LOGP], expected)
    assert not seen[Columns.ACTION_LOGP].requires_grad
    # In the gradient steps that follow it stays the one that played.
    moved(policy)
    torch.manual_seed(2)
    again = augmented(batch)
    assert (again[Columns.ACTION_LOGP] - log_probabilities(policy, again)).abs().max() > 0.01
    augmented.begin(policy)
    torch.manual_seed(2)
    new = augmented(batch)
    assert torch.equal(new[Columns.OBS], again[Columns.OBS])
    if not epsilon:
        torch.testing.assert_close(new[Columns.ACTION_LOGP], log_probabilities(policy, new))


def test_a_policy_that_was_shown_other_pictures_is_asked_about_those_that_are_kept():
    policy, batch = policy_of(0), batch_of(0)
    moved(policy)
    augmented = Augmented([Distil(DistilOptions(), policy.encoder)], 0.0)
    augmented.begin(policy)
    seen = augmented(batch)
    assert torch.equal(seen[Columns.OBS], batch[Columns.OBS])
    torch.testing.assert_close(seen[Columns.ACTION_LOGP], log_probabilities(policy, batch).detach())


def test_nothing_is_touched_or_copied_where_nothing_augments():
    policy, batch = policy_of(0), batch_of(0)
    augmented = Augmented([CURL(CURLOptions(), policy.encoder)], 0.0)
    augmented.begin(policy)
    assert augmented._played_by is None
    assert augmented(batch) is batch
