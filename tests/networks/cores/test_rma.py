"""RMA against a literal version: one episode, one step, one head and one row at a time."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.networks.cores.recall import numbers_in, read
from rllib_conspec.networks.cores.rma import RMACore, RMAOptions

INPUTS, DIM = 5, 6


def core_of(seed=0, **sizes):
    torch.manual_seed(seed)
    small = {"hidden": 7, "width": 4, "units": 3, "slots": 30, "heads": 2, "reads": 50}
    core = RMACore(INPUTS, DIM, RMAOptions(**(small | sizes))).double()
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.normal_()
    return core


def begin(core, count):
    return {k: s.double().expand(count, *s.shape) for k, s in core.initial_state().items()}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def lstm(cell, known, told, c):
    """Gates i, f, o and the candidate, one unit at a time."""
    w, b, u = cell.known.weight, cell.known.bias, cell.told.weight
    total = [float(b[j] + w[j] @ known + u[j] @ told) for j in range(4 * cell.units)]
    n = cell.units
    new = [
        sigmoid(total[n + j]) * float(c[j]) + sigmoid(total[j]) * math.tanh(total[3 * n + j])
        for j in range(n)
    ]
    h = [sigmoid(total[2 * n + j]) * math.tanh(new[j]) for j in range(n)]
    return (torch.tensor(part, dtype=torch.double) for part in (h, new))


@torch.no_grad()
def literal(core, episode):
    """One episode [T, INPUTS]: features, strengths [T, H], and what was read: per step and head
    {step: weight}.
    """
    o = core.options
    h1, c1, h2, c2 = (torch.zeros(o.units).double() for _ in range(4))
    m = torch.zeros(o.heads * o.width).double()
    memory, features, strengths, found = [], [], [], []
    for t, x in enumerate(episode):
        first, last = core.store[0], core.store[2]
        z = last.weight @ torch.tanh(first.weight @ x + first.bias) + last.bias
        h1, c1 = lstm(core.first, z, torch.cat([h1, m]), c1)
        h2, c2 = lstm(core.second, z, torch.cat([h1, h2]), c2)
        asked = core.ask.weight @ torch.cat([h1, h2]) + core.ask.bias
        there = [s for s in range(t) if t - s <= o.slots]
        reads, loud, places = [], [], []
        for head in range(o.heads):
            key = asked[head * o.width : (head + 1) * o.width]
            strength = math.log1p(math.exp(float(asked[o.heads * o.width + head])))
            alike = {s: float(key @ memory[s] / (key.norm() * memory[s].norm())) for s in there}
            nearest = sorted(there, key=lambda s: -alike[s])[: o.reads]
            powers = {s: math.exp(strength * alike[s]) for s in nearest}
            weights = {s: p / sum(powers.values()) for s, p in powers.items()}
            reads.append(sum((w * memory[s] for s, w in weights.items()), 0 * z))
            loud.append(strength)
            places.append(weights)
        m = torch.cat(reads)
        memory.append(z)
        features.append(torch.tanh(core.out.weight @ torch.cat([z, h1, h2, m]) + core.out.bias))
        strengths.append(loud)
        found.append(places)
    return torch.stack(features), torch.tensor(strengths, dtype=torch.double), found


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    steps=st.integers(1, 12),
    slots=st.integers(1, 14),
    reads=st.integers(1, 14),
    heads=st.integers(1, 3),
    cut=st.integers(0, 11),
)
def test_step_sequence_and_pieces_are_the_literal_version(seed, steps, slots, reads, heads, cut):
    core = core_of(seed, slots=slots, reads=reads, heads=heads)
    x = torch.randn(2, steps, INPUTS).double()
    expected = [literal(core, episode) for episode in x]
    features = torch.stack([f for f, _, _ in expected])
    strengths = torch.stack([s for _, s, _ in expected])

    whole, last, outputs = core(x, begin(core, 2))
    torch.testing.assert_close(whole, features)
    torch.testing.assert_close(outputs["read_strengths"], strengths)

    if 0 < cut < steps:  # an episode that is learned in two pieces
        one, between, _ = core(x[:, :cut], begin(core, 2))
        two, end, _ = core(x[:, cut:], between)
        torch.testing.assert_close(torch.cat([one, two], dim=1), features)
        torch.testing.assert_close(end, last)

    state = begin(core, 2)
    with torch.no_grad():
        for t in range(steps):
            before = {k: s.clone() for k, s in state.items()}
            out, new, given = core.step(x[:, t], state)
            torch.testing.assert_close(state, before, rtol=0, atol=0)  # whoever keeps it may
            state = new
            torch.testing.assert_close(out, features[:, t])
            assert tuple(given) == core.gives
            torch.testing.assert_close(given["read_strengths"], strengths[:, t])
            for b in range(2):
                for head in range(heads):
                    said = weights_of(given, b, head)
                    truth = expected[b][2][t][head]
                    assert said.keys() == truth.keys()
                    assert all(said[s] == pytest.approx(truth[s]) for s in truth)
    torch.testing.assert_close(state, last)


def weights_of(given, b, head):
    pairs = zip(given["read_addresses"][b, head], given["read_weights"][b, head], strict=True)
    return {int(step): float(weight) for step, weight in pairs if weight > 0}


def test_every_parameter_learns_and_what_comes_later_teaches_what_was_stored():
    core = core_of()
    x = torch.randn(2, 6, INPUTS).double().requires_grad_()
    features, _, _ = core(x, begin(core, 2))
    features[:, -1].sum().backward()
    for name, parameter in core.named_parameters():
        assert (parameter.grad != 0).any(), name
    assert (x.grad[:, 0] != 0).any()


def test_reading_an_empty_memory_gives_nothing_and_no_bad_gradient():
    rows = torch.zeros(1, 4, 3)
    keys = torch.randn(1, 2, 3, requires_grad=True)
    for most in (2, 8):
        found = read(rows, rows, torch.zeros(1, 4), keys, torch.ones(1, 2), most)
        assert (found.found == 0).all() and (found.weights == 0).all()
        found.found.sum().backward()
        assert torch.isfinite(keys.grad).all()


def test_the_newest_steps_stand_in_the_slots():
    counts = torch.tensor([0.0, 2.0, 7.0])
    expected = [[-3, -2, -1], [0, 1, -1], [6, 4, 5]]
    got = numbers_in(counts, 3).tolist()
    for row, said in zip(expected, got, strict=True):
        assert [s for s in said if s >= 0] == [s for s in row if s >= 0]


def test_the_defaults_fit_a_small_task_and_the_papers_sizes_can_be_had():
    paper = {"hidden": 400, "width": 200, "units": 256, "slots": 1000}
    sizes = {name: s.shape for name, s in core_of(**paper).initial_state().items()}
    assert sizes["rows"] == (1000, 200)
    assert sizes["h1"] == sizes["c2"] == (256,)
    assert RMAOptions().heads == 3 and RMAOptions().reads == 50
