"""The Decision Transformer against a slow version, token by token, and what its tokens may see."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rllib_conspec.networks.decision_transformer import DecisionTransformer, action_loss

ACTIONS, WIDTH, LONGEST = 3, 8, 9


def transformer(seed=0, blocks=2, heads=2, dropout=0.1):
    torch.manual_seed(seed)
    made = DecisionTransformer(
        nn.Linear(4, WIDTH),
        ACTIONS,
        width=WIDTH,
        longest=LONGEST,
        blocks=blocks,
        heads=heads,
        dropout=dropout,
    )
    with torch.no_grad():  # larger than its small beginnings, so that all of it matters
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return made.eval()


def windows(seed, batch=2, context=5):
    generator = torch.Generator().manual_seed(seed)
    begins = torch.randint(LONGEST - context + 1, (batch, 1), generator=generator)
    return (
        torch.randn(batch, context, generator=generator),
        torch.randn(batch, context, 4, generator=generator),
        torch.randint(ACTIONS, (batch, context), generator=generator),
        begins + torch.arange(context),
    )


def normalised(x, layer):
    centred = x - x.mean()
    return centred / torch.sqrt((centred**2).mean() + 1e-5) * layer.weight + layer.bias


def literal(model, returns, observations, actions, steps):
    """One window: all tokens in a list, each with those before it, one head after the other."""
    tokens = []
    for r, s, a, t in zip(returns, observations, actions, steps, strict=True):
        when = model.steps.weight[t]
        tokens.append(model.returns.weight[:, 0] * r + model.returns.bias + when)
        tokens.append(model.encoder(s) + when)
        tokens.append(model.actions.weight[a] + when)
    x = [normalised(token, model.begin[0]) for token in tokens]
    for block in model.blocks:
        size = WIDTH // block.heads
        looks = [block.look(normalised(token, block.before)) for token in x]
        after = []
        for i, token in enumerate(x):
            parts = []
            for head in range(block.heads):
                own = slice(head * size, (head + 1) * size)
                q = looks[i][:WIDTH][own]
                weights = [
                    math.exp(float(q @ looks[j][WIDTH : 2 * WIDTH][own]) / math.sqrt(size))
                    for j in range(i + 1)
                ]
                parts.append(
                    sum(
                        w / sum(weights) * looks[j][2 * WIDTH :][own] for j, w in enumerate(weights)
                    )
                )
            token = token + block.gather(torch.cat(parts))
            after.append(token + block.think(normalised(token, block.between)))
        x = after
    return torch.stack([model.head(normalised(token, model.end)) for token in x[1::3]])


@settings(max_examples=10)
@given(st.integers(0, 2**31), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_logits_are_those_of_the_slow_version(seed, heads, context):
    model = transformer(seed % 1000, heads=heads)
    given_ = windows(seed, context=context)
    with torch.no_grad():
        found = model(*given_)
        for row, one in enumerate(zip(*given_, strict=True)):
            torch.testing.assert_close(found[row], literal(model, *one), rtol=1e-3, atol=1e-4)


@settings(max_examples=20)
@given(st.integers(0, 2**31), st.integers(0, 4))
def test_a_step_sees_what_came_before_and_not_its_own_action_or_what_follows(seed, t):
    model = transformer()
    returns, observations, actions, steps = windows(seed)
    with torch.no_grad():
        before = model(returns, observations, actions, steps)
        other = windows(seed + 1)
        changed = [x.clone() for x in (returns, observations, actions)]
        for mine, its in zip(changed, other[:3], strict=True):
            mine[:, t + 1 :] = its[:, t + 1 :]
        changed[2][:, t] = (actions[:, t] + 1) % ACTIONS
        after = model(*changed, steps)
        assert torch.equal(before[:, : t + 1], after[:, : t + 1])
        # It does see the return that is asked for, and the observation.
        for i in (0, 1):
            changed = [x.clone() for x in (returns, observations, actions)]
            changed[i][:, t] += 1
            assert (model(*changed, steps)[:, t] - before[:, t]).abs().max() > 1e-4


@given(st.integers(0, 2**31))
def test_the_loss_is_over_real_steps(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 4, ACTIONS, generator=generator)
    actions = torch.randint(ACTIONS, (3, 4), generator=generator)
    lengths = torch.randint(1, 5, (3,), generator=generator)
    mask = torch.arange(4) < lengths[:, None]
    terms = [
        -math.log(math.exp(logits[b, t, actions[b, t]]) / sum(map(math.exp, logits[b, t].tolist())))
        for b in range(3)
        for t in range(int(lengths[b]))
    ]
    assert float(action_loss(logits, actions, mask)) == pytest.approx(sum(terms) / len(terms))


def test_dropout_only_while_it_learns_and_late_steps_are_the_last_known():
    model = transformer(dropout=0.5)
    given_ = windows(3)
    assert torch.equal(model(*given_), model(*given_))
    later = (*given_[:3], given_[3] + 100)
    assert torch.isfinite(model(*later)).all()
    model.train()
    assert not torch.equal(model(*given_), model(*given_))
