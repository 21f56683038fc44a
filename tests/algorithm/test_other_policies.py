"""Our networks as policies of other algorithms."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.dqn.default_dqn_rl_module import QF_PREDS
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import TARGET_NETWORK_ACTION_DIST_INPUTS
from tiny import KEYS, MODEL

from rllib_conspec import ConSpecAPPOConfig, ConSpecDQNConfig, ConSpecIMPALAConfig, ConSpecSACConfig
from rllib_conspec.algorithm.other_policies import QPolicy, TargetPolicy
from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.errors import OptionError

CONFIGS = {
    ConSpecAPPOConfig: TargetPolicy,
    ConSpecIMPALAConfig: EpisodePolicy,
    ConSpecDQNConfig: QPolicy,
}


def config_of(config_class, **model):
    config = config_class().environment(KEYS, env_config={"keys": 1})
    return config.rl_module(model_config=MODEL | model) if model is not None else config


def policy_of(config_class, **model):
    env = gym.make(KEYS, keys=1)
    spaces = {"default_policy": (env.observation_space, env.action_space)}
    return config_of(config_class, **model).get_rl_module_spec(spaces=spaces).build()


def batch_of(policy, rows=3, steps=7):
    """Random pictures [B, T, …], or [B, …] for a policy without memory."""
    rng = np.random.default_rng(0)
    shape = (rows, steps) if policy.is_stateful() else (rows,)
    pictures = torch.from_numpy(rng.integers(0, 256, (*shape, 5, 5, 3), dtype=np.uint8))
    state = {k: s.repeat(rows, *[1] * s.dim()) for k, s in policy.get_initial_state().items()}
    batch = {Columns.OBS: pictures, Columns.NEXT_OBS: pictures}
    return batch | ({Columns.STATE_IN: state, Columns.NEXT_STATE_IN: state} if state else {})


@pytest.mark.parametrize(("config_class", "policy"), CONFIGS.items())
def test_keys_of_ours_ask_for_ours(config_class, policy):
    assert type(policy_of(config_class)) is policy
    plain = config_class().environment("CartPole-v1")
    assert not plain.our_networks
    assert not issubclass(plain.get_default_rl_module_spec().module_class, policy)
    rllibs = plain.rl_module(model_config={"fcnet_hiddens": [8]})
    assert not rllibs.our_networks


def test_where_there_is_none_of_ours():
    config = ConSpecSACConfig().rl_module(model_config={"encoder": "mlp"})
    assert not config.our_networks


@pytest.mark.parametrize("config_class", CONFIGS)
@pytest.mark.parametrize(
    ("model", "option"),
    [
        ({"encoder": "convv"}, "model_config.encoder"),
        ({"core_dim": -1}, "model_config.core_dim"),
        ({"fcnet_hiddens": [8]}, "model_config.fcnet_hiddens"),
    ],
)
def test_values_are_checked(config_class, model, option):
    with pytest.raises(OptionError) as raised:
        config_of(config_class, **model).validate()
    assert raised.value.option == option


def test_a_piece_is_one_sequence():
    for fragment, steps in ((1, 20), (50, 51)):
        config = config_of(ConSpecIMPALAConfig).env_runners(rollout_fragment_length=fragment)
        assert config.model_config["max_seq_len"] == steps


@pytest.mark.parametrize("core_dim", [0, 8])
def test_the_older_policy_of_appo_begins_as_the_policy_and_stays(core_dim):
    policy = policy_of(ConSpecAPPOConfig, core_dim=core_dim)
    policy.make_target_networks()
    batch = batch_of(policy)
    now = policy.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    old = policy.forward_target(batch)[TARGET_NETWORK_ACTION_DIST_INPUTS]
    assert now.shape == (*batch[Columns.OBS].shape[:-3], 4)
    torch.testing.assert_close(now, old)
    for main, _ in policy.get_target_network_pairs():
        for parameter in main.parameters():
            parameter.data += 0.1
    assert not torch.allclose(policy.forward_train(batch)[Columns.ACTION_DIST_INPUTS], old)
    unmoved = policy.forward_target(batch)[TARGET_NETWORK_ACTION_DIST_INPUTS]
    torch.testing.assert_close(unmoved, old)
    assert not any(parameter.requires_grad for parameter in policy.old_actor.parameters())


@pytest.mark.parametrize("core_dim", [0, 8])
@pytest.mark.parametrize("dueling", [True, False])
def test_values_of_actions(core_dim, dueling):
    config = config_of(ConSpecDQNConfig, core_dim=core_dim).training(dueling=dueling)
    env = gym.make(KEYS, keys=1)
    spaces = {"default_policy": (env.observation_space, env.action_space)}
    policy = config.get_rl_module_spec(spaces=spaces).build()
    policy.make_target_networks()
    batch = batch_of(policy)
    out = policy.forward_train(batch)
    assert out[QF_PREDS].shape == (*batch[Columns.OBS].shape[:-3], 4)
    assert policy.is_stateful() == bool(core_dim)
    assert (Columns.STATE_OUT in policy.compute_q_values(batch)) == bool(core_dim)
    out[QF_PREDS].sum().backward()
    assert all(p.grad is not None for p in policy.encoder.parameters())
