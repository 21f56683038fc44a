"""What every auxiliary loss is given, and what it need not have."""

import pytest
import torch
from torch import nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss, PolicyBatch
from rllib_conspec.options import Options


def batch(mask) -> PolicyBatch:
    nothing = torch.zeros(2, 3)
    return PolicyBatch(nothing, mask, nothing, nothing, forward=None, kl=None, policy=None)


def test_means_are_over_the_real_steps():
    values = torch.tensor([[1.0, 2.0, 100.0], [3.0, 100.0, 100.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert batch(mask).mean(values) == 2.0
    assert batch(None).mean(values) == pytest.approx(51.0)


class Distance(AuxiliaryLoss):
    """Its own parameters, and a reference to the policy's encoder."""

    def __init__(self, options, encoder):
        super().__init__(options, encoder)
        self.target = nn.Linear(2, 2)
        self.encoder = (encoder,)

    def loss(self, batch):
        return (self.target.weight - self.encoder[0].weight).square().sum()


def test_a_loss_has_its_own_parameters_and_not_the_encoders():
    loss = Distance(Options(), nn.Linear(2, 2))
    assert {name for name, _ in loss.named_parameters()} == {"target.weight", "target.bias"}


def test_checks_and_steps_ask_nothing_unless_a_loss_does():
    Distance.check(Options(), (4,))
    loss = Distance(Options(), nn.Linear(2, 2))
    before = {k: v.clone() for k, v in loss.state_dict().items()}
    loss.after_step()
    assert all(torch.equal(v, before[k]) for k, v in loss.state_dict().items())


def test_a_loss_must_say_what_it_is():
    with pytest.raises(NotImplementedError):
        AuxiliaryLoss(Options(), nn.Linear(2, 2)).loss(batch(None))
