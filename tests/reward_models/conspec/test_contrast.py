"""One evaluation of the loss, against the literal formulas."""

from unittest import mock

import builders
import literal
import numpy as np
import pytest
import torch
from builders import Problem, problems
from evaluating import assert_same_gradients, evaluate, gradients, spread_model
from hypothesis import given, settings

from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.contrast import (
    best_matches,
    best_unclaimed,
    contrastive_loss,
    overlaps,
)
from rllib_conspec.reward_models.conspec.view import Contrast, View


@given(problems())
@settings(builders.examples, max_examples=100)
def test_loss_gradients_and_criterion_are_the_formulas(problem: Problem):
    o = problem.options
    model = builders.model(o, problem.seed)
    arguments = (model, o, problem.active, problem.live, problem.exemplars)
    with mock.patch.object(L, "SOFTMAX_SCALE", problem.softmax_scale):
        found = evaluate(*arguments)
    expected = literal.loss(*arguments, problem.softmax_scale)

    for term in ("success", "failure", "diversity", "total"):
        assert getattr(found, term).item() == pytest.approx(
            getattr(expected, term).item(), abs=1e-9
        ), term
    assert found.success_best.keys() == set(range(problem.active))
    for i in range(problem.active):
        won = [b.item() for b in expected.success_best[i]]
        lost = [b.item() for b in expected.failure_best[i]]
        np.testing.assert_allclose(found.success_best[i], won, atol=1e-9)
        np.testing.assert_allclose(found.failure_best[i].sort().values, sorted(lost), atol=1e-9)
        assert bool(
            L.meets_criterion(found.success_best[i][None], found.failure_best[i][None], o.threshold)
        ) == literal.meets_criterion(
            expected.success_best[i], expected.failure_best[i], o.threshold
        )
    assert_same_gradients(
        gradients(found.total, model), gradients(expected.total, model), tolerance=1e-6
    )


def test_a_stopped_prototype_vector_is_no_part_of_the_graph():
    o = builders.options(num_prototypes=2, stop_gradient=True)
    model = builders.model(o)
    live = builders.episodes(o, [3], 1), builders.episodes(o, [3], 2)
    evaluate(model, o, 2, live, {}).total.backward()
    assert model.vectors.grad is None
    assert model.layer1.grad.abs().max() > 0


@pytest.mark.parametrize("diversity", ["cosine", "entropy"])
def test_prototypes_beyond_the_active_get_no_gradient(diversity):
    o = builders.options(num_prototypes=4, diversity=diversity)
    model = builders.model(o)
    live = builders.episodes(o, [3, 3], 1), builders.episodes(o, [3, 3], 2)
    evaluate(model, o, 2, live, {}).total.backward()
    for weights in (model.vectors, model.layer1, model.layer2):
        assert (weights.grad[2:] == 0).all()
        assert all(weights.grad[i].abs().max() > 0 for i in range(2))


@pytest.mark.parametrize("top_k", [1, 3])
@pytest.mark.parametrize("diversity", ["cosine", "entropy"])
def test_a_much_longer_episode_leaves_the_others_alone(monkeypatch, top_k, diversity):
    """Padding enters neither a maximum, nor a mean of k, nor a softmax."""
    o = builders.options(num_prototypes=3, top_k=top_k, diversity=diversity)
    monkeypatch.setattr(L, "SOFTMAX_SCALE", 5.0)
    model = builders.model(o, 5)
    won, lost = builders.episodes(o, [1, 4], 1), builders.episodes(o, [2, 3], 2)
    (long_won,), (long_lost,) = (
        builders.episodes(o, [60], 3),
        builders.episodes(o, [50], 4),
    )

    def terms(successes, failures):
        return evaluate(model, o, 3, (successes, failures), {})

    alone, together = terms(won, lost), terms((*won, long_won), (*lost, long_lost))
    only_long = terms((long_won,), (long_lost,))
    for i in range(3):
        np.testing.assert_allclose(together.success_best[i][:2], alone.success_best[i], atol=1e-12)
        np.testing.assert_allclose(together.failure_best[i][:2], alone.failure_best[i], atol=1e-12)
    # The first two terms are means over episodes, the third is a sum.
    for term, count in (("success", 2), ("failure", 2)):
        shares = count * getattr(alone, term) + getattr(only_long, term)
        assert ((count + 1) * getattr(together, term) - shares).item() == pytest.approx(
            0, abs=1e-10
        )
    assert together.diversity.item() == pytest.approx(
        (alone.diversity + only_long.diversity).item(), abs=1e-10
    )


def test_best_matches_are_the_formula():
    o = builders.options(num_prototypes=4, top_k=2)
    model = builders.model(o)
    kept = builders.episodes(o, [1, 5, 3], 1)
    found = best_matches(model, (2, 0), kept, o.top_k)
    assert not found.requires_grad
    for row, i in zip(found, (2, 0), strict=True):
        expected = [
            literal.best_match(literal.episode_scores(model, o, e)[i], o.top_k) for e in kept
        ]
        np.testing.assert_allclose(row, [b.item() for b in expected], atol=1e-12)


@pytest.mark.parametrize("window", [0, 2])
def test_overlaps_are_means_over_episodes(monkeypatch, window):
    o = builders.options(num_prototypes=3, diversity_window=window)
    monkeypatch.setattr(L, "SOFTMAX_SCALE", 5.0)
    model = builders.model(o)
    kept = builders.episodes(o, [2, 5, 3], 1)
    found = overlaps(model, [2, 0], kept, o)
    total = 0.0
    for episode in kept:
        s = literal.episode_scores(model, o, episode)
        times = [literal.match_times(s[i], 5.0) for i in (2, 0)]
        p = [torch.stack(literal.spread(t, window)) for t in times]
        total += literal.cosine(*p).item()
    np.testing.assert_allclose(found, [[1, total / 3], [total / 3, 1]], atol=1e-9)


# --- steps that frozen prototypes claim -----------------------------------------------------------


def claims_by_hand(model, o, frozen, episode):
    """Steps around the frozen prototypes' best matches; none if that were all."""
    s = literal.episode_scores(model, o, episode)
    near = set()
    for i in frozen:
        scores = [v.item() for v in s[i]]
        if max(scores) > o.threshold:
            at = scores.index(max(scores))
            near |= {t for t in range(len(scores)) if abs(t - at) <= o.diversity_window}
    return near if len(near) < len(s[0]) else set()


def claimed_problem(candidates=None):
    """Two live prototypes and a frozen one that matches something in most successes."""
    o = builders.options(
        num_prototypes=3, threshold=0.2, diversity_window=1, failure_coeff=1.3, diversity="cosine"
    )
    model = spread_model(o, 3)
    live = Contrast((0, 2), builders.episodes(o, [9, 7, 2, 8], 1), builders.episodes(o, [6, 9], 2))
    own = Contrast((1,), builders.episodes(o, [5], 3), builders.episodes(o, [6], 4))
    view = View(model, [live, own], candidates)
    s = view.scores_without_graph([((1,), live.successes)])
    view.claim(s, (1,), live.successes, o)
    return o, model, live, own, view


@pytest.mark.parametrize("candidates", [None, 1])
def test_live_prototypes_leave_what_frozen_ones_claim(candidates):
    """Outside of it is their best match; inside of it they have none, as in a failure."""
    o, model, live, own, view = claimed_problem(candidates)
    found = contrastive_loss(view, o, 3, live, [own])
    claims = [claims_by_hand(model, o, (1,), e) for e in live.successes]
    assert any(claims) and not all(claims)
    success = failure = 0.0
    for i in live.prototypes:
        scores = [literal.episode_scores(model, o, e)[i] for e in live.successes]
        free = [
            max(v for t, v in enumerate(s) if t not in c)
            for s, c in zip(scores, claims, strict=True)
        ]
        taken = [max(s[t] for t in c) for s, c in zip(scores, claims, strict=True) if c]
        lost = [max(literal.episode_scores(model, o, e)[i]) for e in live.failures] + taken
        success = success + sum(abs(1 - b) for b in free) / len(free)
        failure = failure + sum(abs(b) for b in lost) / len(lost)
        np.testing.assert_allclose(found.success_best[i], [b.item() for b in free], atol=1e-9)
    own_scores = [literal.episode_scores(model, o, e)[1] for e in (*own.successes, *own.failures)]
    success = success + abs(1 - max(own_scores[0]))
    failure = failure + abs(max(own_scores[1]))
    assert found.success.item() == pytest.approx(success.item(), abs=1e-9)
    assert found.failure.item() == pytest.approx(1.3 * failure.item(), abs=1e-9)
    if candidates is None:
        expected = gradients(success + 1.3 * failure, model)
        assert_same_gradients(gradients(found.success + found.failure, model), expected, 1e-6)


def test_what_is_claimed_does_not_count_for_the_diversity_of_the_others():
    o, model, live, own, view = claimed_problem()
    with mock.patch.object(L, "SOFTMAX_SCALE", 5.0):
        found = contrastive_loss(view, o, 3, live, [own]).diversity
    total = 0.0
    for episode in live.successes:
        s = literal.episode_scores(model, o, episode)
        claims = claims_by_hand(model, o, (1,), episode)
        p = []
        for i in live.prototypes:
            steps = torch.stack([v for t, v in enumerate(s[i]) if t not in claims])
            times = iter((5.0 * steps).softmax(0))
            whole = [steps.new_zeros(()) if t in claims else next(times) for t in range(len(s[i]))]
            spread = torch.stack(literal.spread(whole, o.diversity_window))
            free = [float(t not in claims) for t in range(len(s[i]))]
            p.append(spread * torch.tensor(free))
        total += 2 * literal.cosine(*p).item()
    assert found.item() == pytest.approx(o.diversity_coeff / 3 * total, abs=1e-9)


def test_live_prototypes_are_judged_by_what_is_not_claimed():
    o, model, live, _, _ = claimed_problem()
    won, lost = best_unclaimed(model, [((1,), (0, 2))], 3, live.successes, live.failures, o)
    assert not won.requires_grad
    for i in range(3):
        for k, episode in enumerate(live.successes):
            claims = set() if i == 1 else claims_by_hand(model, o, (1,), episode)
            s = literal.episode_scores(model, o, episode)[i]
            expected = max(v.item() for t, v in enumerate(s) if t not in claims)
            assert won[i, k].item() == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(lost, best_matches(model, range(3), live.failures, 1), atol=1e-12)
