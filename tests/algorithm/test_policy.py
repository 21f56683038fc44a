"""The policy as RLlib uses it, and as our own rollout uses it."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns

from rllib_conspec.algorithm.policy import EpisodePolicy

PIXELS = spaces.Box(0, 255, (12, 10, 3), np.uint8)
VECTOR = spaces.Box(-np.inf, np.inf, (6,), np.float32)
ACTIONS = {"discrete": spaces.Discrete(4), "box": spaces.Box(-2.0, 2.0, (3,), np.float32)}
OUTPUTS = {"discrete": 4, "box": 6}  # logits; means and log deviations


def policy(encoder, core_dim, action_space):
    torch.manual_seed(0)
    return EpisodePolicy(
        observation_space=VECTOR if encoder == "mlp" else PIXELS,
        action_space=action_space,
        model_config={"encoder": encoder, "encoder_dim": 16, "core_dim": core_dim},
    )


def observations(module, *batch):
    rng = np.random.default_rng(1)
    space = module.observation_space
    if space.dtype == np.uint8:
        return torch.from_numpy(rng.integers(0, 256, (*batch, *space.shape), np.uint8))
    return torch.from_numpy(rng.normal(size=(*batch, *space.shape)).astype(np.float32))


def batch_of(module, obs):
    """A batch as RLlib's connectors give it: states [B, core_dim] if there are any."""
    state = {k: v.expand(len(obs), -1) for k, v in module.get_initial_state().items()}
    return {Columns.OBS: obs} | ({Columns.STATE_IN: state} if state else {})


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("core_dim", [0, 8])
@pytest.mark.parametrize("encoder", ["conv", "impala", "mlp"])
def test_shapes(encoder, core_dim, actions):
    module = policy(encoder, core_dim, ACTIONS[actions])
    lead = (2, 5) if core_dim else (7,)
    batch = batch_of(module, observations(module, *lead))
    assert module.is_stateful() == bool(core_dim)

    out = module.forward_train(batch)
    assert out[Columns.ACTION_DIST_INPUTS].shape == (*lead, OUTPUTS[actions])
    values = module.compute_values(batch, out[Columns.EMBEDDINGS])
    assert values.shape == lead
    torch.testing.assert_close(values, module.compute_values(batch))

    explored = module.forward_exploration(batch)
    torch.testing.assert_close(
        explored[Columns.ACTION_DIST_INPUTS], out[Columns.ACTION_DIST_INPUTS]
    )
    if core_dim:
        assert explored[Columns.STATE_OUT]["h"].shape == (2, 8)
    else:
        assert Columns.STATE_OUT not in explored

    distribution = module.get_exploration_action_dist_cls().from_logits(
        out[Columns.ACTION_DIST_INPUTS]
    )
    action = distribution.sample()
    assert action.shape == (lead if actions == "discrete" else (*lead, 3))
    assert distribution.logp(action).shape == lead


@pytest.mark.parametrize("encoder", ["conv", "impala", "mlp"])
@pytest.mark.parametrize("core_dim", [0, 8])
def test_first_policy_is_almost_uniform(encoder, core_dim):
    module = policy(encoder, core_dim, ACTIONS["discrete"])
    lead = (8, 4) if core_dim else (32,)
    logits = module.forward_train(batch_of(module, observations(module, *lead)))[
        Columns.ACTION_DIST_INPUTS
    ]
    probability = logits.softmax(-1)
    assert (probability - 0.25).abs().max() < 0.05
    # Almost, not exactly: a policy whose actor has no weights would never be told apart.
    assert (probability - 0.25).abs().max() > 0


@pytest.mark.parametrize("core_dim", [0, 8])
def test_every_parameter_learns(core_dim):
    module = policy("conv", core_dim, ACTIONS["discrete"])
    lead = (2, 5) if core_dim else (10,)
    batch = batch_of(module, observations(module, *lead))
    out = module.forward_train(batch)
    values = module.compute_values(batch, out[Columns.EMBEDDINGS])
    logits = out[Columns.ACTION_DIST_INPUTS]
    (values.square().sum() + logits.log_softmax(-1)[..., 0].sum()).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize("encoder", ["conv", "impala", "mlp"])
def test_acting_step_by_step_is_the_training_pass(encoder):
    """What worker and learner compute must be the same, or PPO's ratio does not start at 1."""
    module = policy(encoder, 8, ACTIONS["discrete"])
    obs = observations(module, 3, 6)
    with torch.no_grad():
        whole = module.forward_train(batch_of(module, obs))[Columns.ACTION_DIST_INPUTS]
        state = rllib_state = batch_of(module, obs)[Columns.STATE_IN]
        for t in range(6):
            inputs, state, _ = module.act(obs[:, t], state)
            out = module.forward_exploration(
                {Columns.OBS: obs[:, t : t + 1], Columns.STATE_IN: rllib_state}
            )
            rllib_state = out[Columns.STATE_OUT]
            torch.testing.assert_close(inputs, whole[:, t], rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(
                out[Columns.ACTION_DIST_INPUTS][:, 0], whole[:, t], rtol=1e-4, atol=1e-6
            )
            torch.testing.assert_close(rllib_state, state, rtol=1e-4, atol=1e-6)


def test_acting_without_memory_is_the_training_pass():
    module = policy("mlp", 0, ACTIONS["box"])
    obs = observations(module, 5)
    with torch.no_grad():
        inputs, state, outputs = module.act(obs, {})
        whole = module.forward_train({Columns.OBS: obs})[Columns.ACTION_DIST_INPUTS]
    assert state == outputs == {}
    torch.testing.assert_close(inputs, whole)


def test_memory_makes_a_difference():
    """The last step's output depends on the first step's observation, with a GRU only."""
    for core_dim in (0, 8):
        module = policy("mlp", core_dim, ACTIONS["discrete"])
        obs = observations(module, 1, 4)
        other = obs.clone()
        other[0, 0] += 5.0
        if not core_dim:
            obs, other = obs[0], other[0]
        with torch.no_grad():
            a, b = (
                module.forward_train(batch_of(module, o))[Columns.ACTION_DIST_INPUTS]
                for o in (obs, other)
            )
        last = (0, -1) if core_dim else (-1,)
        assert torch.equal(a[last], b[last]) == (core_dim == 0)


@pytest.mark.parametrize("encoder", ["conv", "impala"])
def test_uint8_frames_and_the_same_numbers_as_floats_are_alike(encoder):
    module = policy(encoder, 0, ACTIONS["discrete"])
    obs = observations(module, 4)
    with torch.no_grad():
        a = module.act(obs, {})[0]
        b = module.act(obs.to(torch.float32), {})[0]
    torch.testing.assert_close(a, b)


def test_unsupported_actions_are_refused():
    with pytest.raises(ValueError, match=r"MultiDiscrete.*Discrete or Box"):
        policy("mlp", 0, spaces.MultiDiscrete([2, 3]))


@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_box_actions_of_any_shape_are_either_right_or_refused(shape):
    """Means and deviations for every number of an action, or an error; never for some of them."""
    space = spaces.Box(-1.0, 1.0, shape, np.float32)
    try:
        module = policy("mlp", 0, space)
    except ValueError as error:
        assert "Box" in str(error)
        return
    inputs, _, _ = module.act(observations(module, 5), {})
    assert inputs.shape == (5, 2 * int(np.prod(shape)))
