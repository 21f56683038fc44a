"""RMA's reconstruction losses against sums over single values, and what they teach."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_conspec.algorithm.learner import policy_batch
from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.auxiliary.reconstruct import Reconstruct, ReconstructOptions

PICTURES = spaces.Box(0, 255, (5, 4, 3), np.uint8)
VECTORS = spaces.Box(-2.0, 2.0, (4,), np.float32)
SMALL = {"width": 8, "units": 4, "hidden": 8, "slots": 9}


def case(space=PICTURES, actions=None, **view):
    """A policy with RMA, its loss, and a random minibatch of 3 episodes with 6 steps at most."""
    torch.manual_seed(0)
    policy = RLModuleSpec(
        module_class=EpisodePolicy,
        observation_space=space,
        action_space=actions or spaces.Discrete(3),
        model_config={
            "encoder_dim": 8,
            "core": "rma",
            "core_dim": 4,
            "core_options": SMALL,
            **view,
        },
    ).build()
    rng = np.random.default_rng(0)
    seen = np.stack([[sample(space, rng) for _ in range(6)] for _ in range(3)])
    done = policy.happened(
        np.stack([policy.action_space.sample() for _ in range(18)]), rng.random(18)
    )
    batch = {
        Columns.OBS: torch.from_numpy(seen),
        "happened": done.unflatten(0, (3, 6)),
        Columns.STATE_IN: {k: s.expand(3, *s.shape) for k, s in policy.get_initial_state().items()},
        Columns.LOSS_MASK: torch.arange(6) < torch.tensor([[6], [3], [1]]),
    }
    return policy, Reconstruct.of(ReconstructOptions(), policy), batch


def sample(space, rng):
    if space.dtype == np.uint8:
        return rng.integers(0, 256, space.shape, np.uint8)
    return rng.uniform(space.low, space.high).astype(np.float32)


def loss_of(policy, loss, batch):
    return loss.loss(policy_batch(policy, batch, policy.forward_train(batch)))


def test_the_parts_are_those_of_single_values():
    policy, loss, batch = case()
    outputs = policy.forward_train(batch)["outputs"]
    total = loss_of(policy, loss, batch)
    image, action, reward, strength = [], [], [], []
    for b, length in enumerate((6, 3, 1)):
        for t in range(length):
            z = outputs["z"][b, t]
            chances = torch.sigmoid(loss.see(z)).unflatten(0, (3, 5, 4))  # channels first
            pixels = batch[Columns.OBS][b, t] / 255
            each = [
                float((-x * p.log() - (1 - x) * (1 - p).log()).detach()) + entropy(float(x))
                for i, row in enumerate(pixels)
                for j, pixel in enumerate(row)
                for c, x in enumerate(pixel)
                for p in [chances[c, i, j].double()]
            ]
            image.append(np.mean(each))
            told = loss.recall(z)
            happened = batch["happened"][b, t - 1] if t else torch.zeros(4)
            chosen = int(happened[:3].argmax())
            action.append(float(-told[:3].log_softmax(0)[chosen]) if t else 0.0)
            reward.append(0.5 * float((told[3] - happened[3]).detach()) ** 2)
            strength.append(
                np.mean([max(0.0, float(s) - 2) for s in outputs["read_strengths"][b, t]])
            )
    parts = {"image": image, "action": action, "reward": reward, "strength": strength}
    means = {name: np.mean(values) for name, values in parts.items()}
    for name, mean in means.items():
        assert float(loss.metrics()[name]) == pytest.approx(mean, abs=1e-4)
    weights = ReconstructOptions()
    expected = sum(getattr(weights, name) * mean for name, mean in means.items())
    assert float(total.detach()) == pytest.approx(expected, abs=1e-4)


def entropy(x):
    return sum(p * np.log(p) for p in (x, 1 - x) if p > 0)


@pytest.mark.parametrize("coefficient", ["image", "action", "reward"])
def test_what_is_stored_learns_to_tell_what_it_was_made_of(coefficient):
    policy, _, batch = case()
    others = {name: float(name == coefficient) for name in ("image", "action", "reward")}
    loss = Reconstruct.of(ReconstructOptions(**others, strength=0.0), policy)
    optimizer = torch.optim.Adam([*policy.parameters(), *loss.parameters()], lr=0.02)
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        value = loss_of(policy, loss, batch)
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    assert values[-1] < 0.2 * values[0]


def test_only_reading_more_loudly_than_needed_costs():
    policy, _, batch = case()
    quiet = {"image": 0.0, "action": 0.0, "reward": 0.0, "strength": 1.0}
    for bias, costs in ((-3.0, False), (6.0, True)):
        with torch.no_grad():
            policy.core.ask.bias[-3:] = bias
            policy.core.ask.weight.mul_(0.1)
        value = loss_of(policy, Reconstruct.of(ReconstructOptions(**quiet), policy), batch)
        assert (float(value.detach()) > 0) == costs


@pytest.mark.parametrize(
    ("space", "actions", "view", "numbers"),
    [
        (VECTORS, spaces.Box(-1, 1, (2,), np.float32), {"observation_range": 2.0}, 4),
        (VECTORS, None, {"normalize": True}, 4),
        (spaces.Box(0, 255, (84, 84, 1), np.uint8), None, {}, 21 * 21),
        (spaces.Box(0, 255, (3, 30, 20), np.uint8), None, {"channels": "first"}, 3 * 21 * 20),
    ],
)
def test_observations_and_actions_of_other_kinds(space, actions, view, numbers):
    policy, loss, batch = case(space, actions, **view)
    assert loss.see[-1].out_features == numbers
    value = loss_of(policy, loss, batch)
    value.backward()
    assert torch.isfinite(value)
    assert all(torch.isfinite(p.grad).all() for p in loss.parameters())
    some = policy_batch(policy, batch, policy.forward_train(batch)).only(torch.tensor([2, 0]))
    assert torch.isfinite(loss.loss(some))
    assert torch.equal(
        some.last, torch.cat([some.last[:, :1] * 0, batch["happened"][[2, 0], :-1]], 1)
    )
