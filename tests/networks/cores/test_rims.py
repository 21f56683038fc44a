"""RIMs against a literal version: one episode, one step and one block at a time."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.cores.rims import RIMsCore, RIMsOptions

INPUTS = 5


def core_of(seed=0, units=3, **options):
    torch.manual_seed(seed)
    small = {"blocks": 3, "active": 2, "key_dim": 4, "value_dim": 3, "heads": 2, "head_dim": 2}
    own = RIMsOptions(**(small | options))
    core = RIMsCore(INPUTS, units * own.blocks, own).double()
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.normal_(std=0.5)
    return core


@torch.no_grad()
def literal(core, episode, start):
    """One episode [T, INPUTS] from blocks [K, U] → the blocks at every step [T, K, U]."""
    o, n = core.options, core.units
    h = list(start)
    seen = []
    for x in episode:
        rows = [core.key.weight @ x, torch.zeros(o.key_dim).double()]  # what is seen, nothing
        attention = []
        for i in range(o.blocks):
            scores = [
                float(h[i] @ core.query.weight[i] @ row) / math.sqrt(o.key_dim) for row in rows
            ]
            attention.append(math.exp(scores[0]) / sum(map(math.exp, scores)))
        active = sorted(range(o.blocks), key=lambda i: -attention[i])[: o.active]
        between = list(h)
        for i in active:
            told = attention[i] * (core.value.weight @ x) @ core.told.weight[i]
            own = h[i] @ core.own.weight[i] + core.own.bias[i]
            r = torch.sigmoid(told[:n] + own[:n])
            u = torch.sigmoid(told[n : 2 * n] + own[n : 2 * n])
            new = torch.tanh(told[2 * n :] + r * own[2 * n :])
            between[i] = (1 - u) * new + u * h[i]
        h = list(between)
        for i in active:
            heard, width = [], o.heads * o.head_dim
            for head in range(o.heads):
                place = slice(head * o.head_dim, (head + 1) * o.head_dim)
                query = (between[i] @ core.talk.weight[i])[:width][place]
                said = [between[j] @ core.talk.weight[j] for j in range(o.blocks)]
                alike = [float(query @ s[width : 2 * width][place]) for s in said]
                powers = [math.exp(a / math.sqrt(o.head_dim)) for a in alike]
                values = [s[2 * width :][place] for s in said]
                pairs = zip(powers, values, strict=True)
                heard.append(sum(p * v for p, v in pairs) / sum(powers))
            h[i] = between[i] + torch.cat(heard) @ core.heard.weight[i]
        seen.append(torch.stack(h))
    return torch.stack(seen)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    steps=st.integers(1, 6),
    blocks=st.integers(1, 4),
    active=st.integers(1, 4),
    heads=st.integers(1, 3),
)
def test_step_and_sequence_are_the_literal_version(seed, steps, blocks, active, heads):
    core = core_of(seed, blocks=blocks, active=min(active, blocks), heads=heads)
    x = torch.randn(2, steps, INPUTS).double()
    # Blocks that know nothing want the same: which of them are active is then open.
    start = {"blocks": torch.randn(2, blocks, core.units).double()}
    pairs = zip(x, start["blocks"], strict=True)
    expected = torch.stack([literal(core, episode, h) for episode, h in pairs])
    features, last, outputs = core(x, start)
    torch.testing.assert_close(features, expected.flatten(2))
    torch.testing.assert_close(last["blocks"], expected[:, -1])
    assert outputs == {}
    state = start
    with torch.no_grad():
        for t in range(steps):
            out, state, _ = core.step(x[:, t], state)
            torch.testing.assert_close(out, features[:, t])


def test_as_many_blocks_as_said_are_active_and_the_others_keep_their_state():
    core = core_of(blocks=5, active=2)
    h = torch.randn(7, 5, 3).double()
    _, new, _ = core.step(torch.randn(7, INPUTS).double(), {"blocks": h})
    changed = (new["blocks"] != h).any(-1)
    assert (changed.sum(1) == 2).all()
    assert changed.any(0).all(), "each of them at some time"


def test_every_parameter_learns():
    core = core_of()
    features, _, _ = core(
        torch.randn(2, 4, INPUTS).double(), {"blocks": torch.zeros(2, 3, 3).double()}
    )
    features.square().sum().backward()
    for name, parameter in core.named_parameters():
        assert (parameter.grad != 0).any(), name


def test_what_was_shown_at_first_is_learned_to_be_told_at_the_end():
    """A sign, seven steps of noise; a core without memory would be right half of the time."""
    torch.manual_seed(0)
    core = RIMsCore(2, 24, RIMsOptions())
    tell = torch.nn.Linear(24, 1)
    optimizer = torch.optim.Adam([*core.parameters(), *tell.parameters()], lr=0.01)
    right = []
    for _ in range(100):
        sign = torch.randint(2, (32,)).float()
        x = torch.randn(32, 8, 2)
        x[:, :, 0] = 0
        x[:, 0, 0] = 2 * sign - 1
        features, _, _ = core(x, {"blocks": torch.zeros(32, 6, 4)})
        told = tell(features[:, -1]).squeeze(-1)
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(told, sign).backward()
        optimizer.step()
        right.append(((told > 0) == (sign > 0)).float().mean())
    assert torch.stack(right[:5]).mean() < 0.75
    assert torch.stack(right[-10:]).mean() > 0.95


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match=r"core_dim: must be a multiple of blocks \(6\).*126"):
        RIMsCore(INPUTS, 128)
    with pytest.raises(OptionError, match="at most blocks"):
        RIMsOptions(active=7)
