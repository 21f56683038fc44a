"""The terms of eqn 1 on padded scores, the criterion, and which scores carry gradient."""

import builders
import literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec import loss as L


@st.composite
def padded_scores(draw):
    """s [H, K, T] with unequal lengths and tied scores, rubbish on the padding, and its mask."""
    count, lengths = (
        draw(st.integers(1, 4)),
        draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    s = rng.uniform(-1, 1, (count, len(lengths), max(lengths)))
    if draw(st.booleans()):
        s = s.round(1)  # many ties
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    rubbish = draw(st.sampled_from([0.0, 50.0, -50.0, np.nan, np.inf]))
    return torch.tensor(np.where(mask, s, rubbish)), torch.tensor(mask)


def rows(s, mask):
    """s[i][k] as lists of the real steps."""
    return [[list(s[i, k][mask[k]]) for k in range(s.shape[1])] for i in range(s.shape[0])]


@given(padded_scores(), st.sampled_from([1, 2, 5, 20]))
@settings(builders.examples)
def test_best_match_is_the_mean_of_the_k_highest_real_steps(scores, top_k):
    expected = [[literal.best_match(steps, top_k).item() for steps in row] for row in rows(*scores)]
    np.testing.assert_allclose(L.best_match(*scores, top_k), expected, atol=1e-12)


@given(padded_scores(), st.sampled_from([-0.5, 0.5]), st.sampled_from([0, 1, 3]))
@settings(builders.examples)
def test_claimed_are_the_steps_around_good_matches_but_never_all(scores, threshold, window):
    s, mask = scores
    found = L.claimed(s, mask, threshold, window)
    for k in range(s.shape[1]):
        length = int(mask[k].sum())
        near = set()
        for row in rows(s, mask):
            best = max(row[k])
            at = [t for t, v in enumerate(row[k]) if v == best and best > threshold]
            near |= {t for a in at for t in range(max(0, a - window), min(length, a + window + 1))}
        expected = near if len(near) < length else set()
        assert set(np.flatnonzero(found[k]).tolist()) == expected


@given(padded_scores(), st.sampled_from([0, 1, 3, 50]))
@settings(builders.examples)
def test_match_times_are_spread_within_their_episode(scores, window):
    s, mask = scores
    p = L.match_times(s, mask, 5.0)
    found = L.spread(p, mask, window)
    assert (found[:, ~mask] == 0).all()
    for i in range(s.shape[0]):
        for k in range(s.shape[1]):
            times = list(p[i, k][mask[k]])
            np.testing.assert_allclose(
                found[i, k][mask[k]], literal.spread(times, window), atol=1e-12
            )


@given(padded_scores(), st.sampled_from([1.0, 100.0]))
@settings(builders.examples)
def test_match_times_and_both_diversities(scores, scale):
    s, mask = scores
    p = L.match_times(s, mask, scale)
    assert (p[:, ~mask] == 0).all()
    by_hand = [[literal.match_times(steps, scale) for steps in row] for row in rows(s, mask)]
    for k in range(s.shape[1]):
        episode = [by_hand[i][k] for i in range(s.shape[0])]
        np.testing.assert_allclose(p[:, k][:, mask[k]], episode, atol=1e-12)
        assert L.cosine_diversity(p)[k].item() == pytest.approx(
            literal.cosine_diversity(episode).item(), abs=1e-9
        )
        assert L.entropy_diversity(p)[k].item() == pytest.approx(
            literal.entropy_diversity(episode).item(), abs=1e-9
        )


@given(padded_scores())
@settings(builders.examples)
def test_overlap_is_the_cosine_of_every_pair(scores):
    s, mask = scores
    p = L.match_times(s, mask, 20.0)
    for k in range(s.shape[1]):
        expected = [[literal.cosine(a, b).item() for b in p[:, k]] for a in p[:, k]]
        np.testing.assert_allclose(L.overlap(p)[k], expected, atol=1e-9)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("diversity", sorted(L.DIVERSITY))
def test_diversity_has_a_finite_gradient_where_a_step_weighs_nothing(diversity, precision):
    """Padding, and steps whose softmax weight single precision rounds to 0."""
    s = torch.tensor([[[1.0, -1.0, 0.9], [0.5, 0.4, 0.0]], [[-1.0, -0.9, 1.0], [0.4, 0.5, 0.0]]])
    s = s.to(precision).requires_grad_()
    mask = torch.tensor([[True, True, True], [True, True, False]])
    L.DIVERSITY[diversity](L.match_times(s, mask, 100.0)).sum().backward()
    assert torch.isfinite(s.grad).all()
    assert (s.grad[:, ~mask] == 0).all()
    assert s.grad.abs().max() > 0


def test_terms_by_hand():
    best = torch.tensor([[1.0, 0.5], [-0.5, 0.25]])
    assert L.success_loss(best).item() == pytest.approx((0 + 0.5) / 2 + (1.5 + 0.75) / 2)
    assert L.failure_loss(best).item() == pytest.approx((1 + 0.5) / 2 + (0.5 + 0.25) / 2)


def test_diversity_by_hand():
    """Matching at the same step is worst, at different steps best, for both forms."""
    same = torch.tensor([[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]])
    apart = torch.eye(3)[:, None]
    assert L.cosine_diversity(same).tolist() == pytest.approx([6.0])
    assert L.cosine_diversity(apart).tolist() == pytest.approx([0.0])
    assert L.entropy_diversity(same).tolist() == pytest.approx([0.0])
    assert L.entropy_diversity(apart).tolist() == pytest.approx([-np.log(3)])


@pytest.mark.parametrize(
    ("won", "lost", "meets"),
    [
        ([0.9, 0.8], [0.1, 0.2], True),
        ([0.9, 0.5], [0.1, 0.0], True),  # means count, not every episode
        ([0.6, 0.6], [-0.5, -0.5], False),  # 0.6 is not more than 0.6
        ([0.5, 0.5], [-0.5, -0.5], False),  # far apart, but the successes are no match
        ([1.0, 1.0], [0.5, 0.5], False),  # matched, but so are the failures
        ([0.9], [0.1, 0.1, 0.9], False),
        ([0.9], [0.1, 0.1, 0.1], True),
    ],
)
def test_criterion_by_hand(won, lost, meets):
    won, lost = torch.tensor([won]), torch.tensor([lost])
    assert L.meets_criterion(won, lost, 0.6).tolist() == [meets]
    assert L.separation(won, lost).item() == pytest.approx((won.mean() - lost.mean()).item())


# --- carries_gradient -------------------------------------------------------------------------


@given(padded_scores(), st.sampled_from([1, 2, 5, 20]), st.sampled_from([None, 20.0, 100.0]))
@settings(builders.examples)
def test_every_best_match_carries_gradient_and_padding_never(scores, top_k, scale):
    s, mask = scores
    kept = L.carries_gradient(s, mask, top_k=top_k, softmax_scale=scale)
    assert not kept[:, ~mask].any()
    leaf = s.masked_fill(~mask, 0.0).requires_grad_()
    L.best_match(leaf, mask, top_k).sum().backward()
    assert (leaf.grad[~kept] == 0).all()


@given(padded_scores(), st.sampled_from([20.0, 50.0, 100.0]))
@settings(builders.examples)
def test_steps_left_out_weigh_less_than_stated(scores, scale):
    s, mask = scores
    kept = L.carries_gradient(s, mask, top_k=1, softmax_scale=scale)
    p = L.match_times(s, mask, scale)
    left_out = ~kept & mask
    largest = p.amax(dim=-1, keepdim=True).expand_as(p)
    assert (p[left_out] < 1e-13 * largest[left_out]).all()
    assert (p[kept] >= 1e-14 * largest[kept]).all()  # no more is kept than the bound asks for

    # The gradient of D by a score is scale · p_t (g_t − Σ p g), with g = ∂D/∂p. For the cosine
    # |p g| ≤ 2 (H − 1) p_t / |p|, and Σ p g = 0.
    leaf = s.masked_fill(~mask, 0.0).requires_grad_()
    L.cosine_diversity(L.match_times(leaf, mask, scale)).sum().backward()
    assert (leaf.grad[left_out].abs() <= 1e-13 * scale * 2 * (len(s) - 1)).all()


def test_without_softmax_only_the_best_are_kept():
    s = torch.tensor([[[0.1, 0.9, 0.5, 0.89, 0.7]]])
    mask = torch.ones(1, 5, dtype=torch.bool)
    assert L.carries_gradient(s, mask, top_k=1)[0, 0].nonzero().flatten().tolist() == [1]
    assert L.carries_gradient(s, mask, top_k=2)[0, 0].nonzero().flatten().tolist() == [1, 3]
    # 0.21 below the maximum is the limit at scale 100.
    kept = L.carries_gradient(s, mask, top_k=1, softmax_scale=100.0)
    assert kept[0, 0].nonzero().flatten().tolist() == [1, 3, 4]
