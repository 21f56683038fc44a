"""Optimizers that go on from a checkpoint of other settings."""

import copy

import torch

from rllib_conspec.networks.optimizers import keeping_settings


def optimizer(lr, weight_decay=0.0):
    weight = torch.nn.Parameter(torch.ones(3))
    return torch.optim.AdamW([weight], lr=lr, weight_decay=weight_decay), weight


def step(one, weight):
    one.zero_grad()
    (weight**2).sum().backward()
    one.step()


def test_moments_are_restored_and_settings_are_not():
    before, weight = optimizer(0.1)
    for _ in range(3):
        step(before, weight)
    state = copy.deepcopy(before.state_dict())
    after, other = optimizer(0.01, weight_decay=0.5)
    with keeping_settings([after]):
        after.load_state_dict(state)
    (group,) = after.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.01, 0.5)
    (held,) = after.state.values()
    assert (
        held["step"] == 3 and held["exp_avg"].tolist() == before.state[weight]["exp_avg"].tolist()
    )
    step(after, other)
    assert 0 < 1 - float(other.detach()[0]) < 0.05, "a step of the new size"
