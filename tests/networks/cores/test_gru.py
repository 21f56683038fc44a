"""Our GRU is torch's GRU: same parameters, same numbers, same gradients; and as a core."""

import pytest
import torch
from torch import nn

from rllib_conspec.networks.cores.gru import GRU, GRUCore

UNITS, INPUTS = 5, 3


def pair(dtype=torch.float64):
    """Our GRU and torch's, with the same random parameters (biases included)."""
    ours = GRU(INPUTS, UNITS).to(dtype)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.normal_()
    theirs = nn.GRU(INPUTS, UNITS, batch_first=True).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("zero_state", [True, False])
@pytest.mark.parametrize(("batch", "steps"), [(4, 7), (1, 7), (4, 1), (1, 1)])
def test_outputs_and_all_gradients_are_those_of_torch(batch, steps, zero_state):
    torch.manual_seed(batch * 10 + steps)
    ours, theirs = pair()
    x = torch.randn(batch, steps, INPUTS, dtype=torch.float64)
    h = torch.randn(batch, UNITS, dtype=torch.float64) * (not zero_state)
    weight_outputs = torch.randn(batch, steps, UNITS, dtype=torch.float64)
    weight_last = torch.randn(batch, UNITS, dtype=torch.float64)

    def run(gru, state_rank):
        x_, h_ = x.clone().requires_grad_(), h.clone().requires_grad_()
        outputs, last = gru(x_, h_.unsqueeze(0) if state_rank == 3 else h_)
        last = last[0] if state_rank == 3 else last
        # Both results take part, so that a gradient through either one alone would be noticed.
        ((outputs * weight_outputs).sum() + (last * weight_last).sum()).backward()
        gradients = {"x": x_.grad, "h": h_.grad}
        gradients |= {name: p.grad for name, p in gru.named_parameters()}
        return outputs, last, gradients

    outputs, last, gradients = run(ours, 2)
    expected_outputs, expected_last, expected = run(theirs, 3)
    torch.testing.assert_close(outputs, expected_outputs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, expected_last, rtol=1e-12, atol=1e-12)
    assert gradients.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(gradients[name], expected[name], rtol=1e-10, atol=1e-10)


def test_only_some_outputs_in_the_loss():
    """A loss on a single step in the middle: later steps must get no gradient."""
    torch.manual_seed(0)
    ours, theirs = pair()
    x = torch.randn(2, 6, INPUTS, dtype=torch.float64)
    h = torch.zeros(2, UNITS, dtype=torch.float64)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours(a, h)[0][:, 2].sum().backward()
    theirs(b, h[None])[0][:, 2].sum().backward()
    assert (a.grad[:, 3:] == 0).all()
    assert (a.grad[:, 2] != 0).any()
    torch.testing.assert_close(a.grad, b.grad)


def test_gradients_agree_with_finite_differences():
    torch.manual_seed(1)
    gru, _ = pair()
    x = torch.randn(2, 3, INPUTS, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, UNITS, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in gru.named_parameters()]

    def run(x, h, *parameters):
        call = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(gru, call, (x, h))

    assert torch.autograd.gradcheck(run, (x, h, *gru.parameters()))


def test_float32_stays_close_over_a_long_episode():
    torch.manual_seed(2)
    ours, theirs = pair(torch.float32)
    x = torch.randn(3, 300, INPUTS)
    h = torch.zeros(3, UNITS)
    torch.testing.assert_close(ours(x, h)[0], theirs(x, h[None])[0], rtol=1e-4, atol=1e-5)


def test_steps_one_by_one_are_the_sequence():
    torch.manual_seed(3)
    gru, _ = pair()
    x = torch.randn(4, 9, INPUTS, dtype=torch.float64)
    state = h = torch.randn(4, UNITS, dtype=torch.float64)
    outputs, last = gru(x, h)
    for t in range(x.shape[1]):
        state = gru.step(x[:, t], state)
        torch.testing.assert_close(state, outputs[:, t], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state, last)


def test_inputs_are_left_as_they_were():
    """The kernels work in place on their own results; never on what they were given."""
    torch.manual_seed(4)
    gru, _ = pair()
    x = torch.randn(2, 4, INPUTS, dtype=torch.float64)
    h = torch.randn(2, UNITS, dtype=torch.float64)
    before = x.clone(), h.clone()
    gru(x, h)
    gru.step(x[:, 0], h)
    assert torch.equal(x, before[0])
    assert torch.equal(h, before[1])


def test_state_dict_has_the_names_and_shapes_of_torch():
    ours, theirs = GRU(INPUTS, UNITS), nn.GRU(INPUTS, UNITS, batch_first=True)
    assert {k: v.shape for k, v in ours.state_dict().items()} == {
        k: v.shape for k, v in theirs.state_dict().items()
    }


def test_initial_weights_are_orthogonal_and_biases_zero():
    gru = GRU(UNITS, UNITS)
    for name, parameter in gru.named_parameters():
        if "bias" in name:
            assert (parameter == 0).all()
        else:
            torch.testing.assert_close(parameter.T @ parameter, torch.eye(UNITS))


# --- as a core --------------------------------------------------------------------------------


def test_the_core_steps_as_it_runs_over_sequences():
    """What rollouts do step by step is what the learner does with the whole episode."""
    torch.manual_seed(5)
    core = GRUCore(INPUTS, UNITS)
    assert core.dim == UNITS
    x = torch.randn(4, 9, INPUTS)
    start = {name: s.expand(4, *s.shape) for name, s in core.initial_state().items()}
    features, last, given = core(x, start)
    assert given == {}
    assert features.shape == (4, 9, UNITS)
    state = start
    with torch.no_grad():
        for t in range(9):
            out, state, outputs = core.step(x[:, t], state)
            torch.testing.assert_close(out, features[:, t])
            assert outputs == {}
    assert state.keys() == last.keys() == start.keys()
    for name in state:
        torch.testing.assert_close(state[name], last[name])


def test_the_core_remembers_from_nothing():
    core = GRUCore(INPUTS, UNITS)
    assert {name: s.tolist() for name, s in core.initial_state().items()} == {"h": [0.0] * UNITS}
    x = torch.randn(1, 2, INPUTS)
    nothing, something = ({"h": torch.full((1, UNITS), v)} for v in (0.0, 0.5))
    assert not torch.equal(core(x, nothing)[0], core(x, something)[0])
