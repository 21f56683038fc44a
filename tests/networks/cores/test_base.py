"""The core without memory passes features through, alone and in sequences."""

import torch

from rllib_conspec.networks.cores.base import Core


def test_features_pass_through_one_step_or_a_sequence():
    core = Core(5, 5)
    assert core.dim == 5
    assert core.initial_state() == {}
    assert list(core.parameters()) == []
    for x in (torch.randn(3, 5), torch.randn(3, 7, 5)):
        features, last, outputs = core(x, {})
        assert features is x and last == outputs == {}
    x = torch.randn(3, 5)
    features, state, outputs = core.step(x, {})
    assert features is x
    assert state == outputs == {}
