"""One evaluation of the loss, against the literal formulas."""

from unittest import mock

import builders
import literal
import numpy as np
import pytest
import torch
from builders import Problem, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.contrast import (
    Contrast,
    View,
    best_matches,
    best_unclaimed,
    contrastive_loss,
    overlaps,
)


def evaluate(model, o, active, live, exemplars):
    """`contrastive_loss` in the terms of `literal.loss`."""
    alive = tuple(i for i in range(active) if i not in exemplars)
    frozen = [Contrast((i,), *own) for i, own in exemplars.items()]
    alive = Contrast(alive, *live)
    return contrastive_loss(View(model, [alive, *frozen]), o, active, alive, frozen)


def gradients(total, model):
    """Gradient of every parameter, by name; None where it is not trained."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    if not total.requires_grad:
        return {n: torch.zeros_like(p) for n, p in trained.items()}
    found = torch.autograd.grad(total, trained.values(), allow_unused=True, retain_graph=True)
    return {
        n: torch.zeros_like(p) if g is None else g
        for (n, p), g in zip(trained.items(), found, strict=True)
    }


def assert_same_gradients(found, expected, tolerance):
    """Within `tolerance`, or that part of the largest entry where it is more than 1."""
    assert found.keys() == expected.keys()
    tolerance *= max(1.0, *(float(g.abs().max()) for g in expected.values()))
    for name, gradient in expected.items():
        assert torch.isfinite(found[name]).all(), name
        worst = float((found[name] - gradient).abs().max())
        assert worst <= tolerance, f"{name} is off by {worst}"


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


# --- steps that frozen prototypes claim ----------------------------------------------------------


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


# --- only what carries gradient is computed with a graph ------------------------------------------


def count_encoded(model) -> list[int]:
    """How many frames each call of `model.encode` was given, filled as it is called."""
    counts, encode = [], model.encode

    def counting(frames):
        counts.append(len(frames))
        return encode(frames)

    model.encode = counting
    return counts


def spread_model(o, seed):
    """A model whose scores spread over most of −1..1, as after some learning."""
    model = builders.model(o, seed)
    with torch.no_grad():
        model.encoder[1].weight *= 3
    return model


@pytest.mark.parametrize("diversity", ["cosine", "entropy"])
@pytest.mark.parametrize("form", builders.FORMS)
def test_pruned_gradient_is_the_full_gradient(diversity, form):
    o = builders.options(num_prototypes=3, diversity=diversity, form=form)
    model = spread_model(o, 1)
    live = builders.episodes(o, [40, 25], 1), builders.episodes(o, [30, 40], 2)
    own = builders.episodes(o, [20], 3), builders.episodes(o, [20], 4)
    expected = gradients(literal.loss(model, o, 3, live, {1: own}).total, model)
    counts = count_encoded(model)
    found = gradients(evaluate(model, o, 3, live, {1: own}).total, model)

    every, second = counts
    assert every == 40 + 25 + 30 + 40 + 20 + 20
    assert 0 < second < every / 2
    assert_same_gradients(found, expected, tolerance=1e-6)


def test_only_best_matches_carry_gradient_without_diversity():
    o = builders.options(num_prototypes=2, diversity_coeff=0.0, projection_dim=32)
    model = builders.model(o)
    live = builders.episodes(o, [30, 30], 1), builders.episodes(o, [30], 2)
    counts = count_encoded(model)
    evaluate(model, o, 2, live, {})
    assert counts[0] == 90
    assert counts[1] <= 2 * 3  # one frame per prototype and episode


def test_equal_frames_are_encoded_once():
    o = builders.options(num_prototypes=2)
    model = builders.model(o)
    pool = builders.frames(o, 3, 1)
    repeating = tuple(builders.episode(pool[[0, 1, 0, 1, 2, 0]]) for _ in range(4))
    counts = count_encoded(model)
    evaluate(model, o, 2, (repeating, (builders.episode(pool[[2, 2]]),)), {})
    assert counts[0] == 3


def test_a_near_tie_keeps_its_gradient_in_single_precision():
    """The passes round differently: what is best in one needs a graph in the other."""
    o = builders.options(num_prototypes=1, diversity_coeff=0.0)
    model = builders.model(o).float()
    rng = np.random.default_rng(0)
    lost_gradients = 0
    for _ in range(40):
        # Frames that differ by less than single precision resolves in the score.
        base = rng.normal(size=4)
        near = np.stack([base * (1 + 3e-8 * k) + 1e-8 * rng.normal(size=4) for k in range(33)])
        near = near.astype(np.float64)
        won, lost = builders.episode(near), builders.episode(near[::-1])
        parts = evaluate(model, o, 1, ((won,), (lost,)), {})
        both = [gradients(part, model)["vectors"] for part in (parts.success, parts.failure)]
        lost_gradients += sum(float(g.abs().max()) == 0 for g in both)
    assert lost_gradients == 0


@given(problems(), st.integers(1, 3))
@settings(builders.examples, max_examples=50)
def test_scored_again_only_the_candidates_count(problem: Problem, candidates):
    """After a change of the weights: the formula, in episodes of the best frames before."""
    o = problem.options
    model = builders.model(o, problem.seed)
    alive = tuple(i for i in range(problem.active) if i not in problem.exemplars)
    live = Contrast(alive, *problem.live)
    frozen = [Contrast((i,), *own) for i, own in problem.exemplars.items()]
    view = View(model, [live, *frozen], candidates)
    first = contrastive_loss(view, o, problem.active, live, frozen)
    exact = contrastive_loss(View(model, [live, *frozen]), o, problem.active, live, frozen)
    for term in ("success", "failure"):  # nothing is left out of these, nor of their gradients
        torch.testing.assert_close(getattr(first, term), getattr(exact, term))
    assert_same_gradients(
        gradients(first.success + first.failure, model),
        gradients(exact.success + exact.failure, model),
        1e-9,
    )
    kept = candidates_of(model, o, problem.active, live, frozen, candidates)
    with torch.no_grad():
        model.vectors += 0.1 * torch.randn_like(model.vectors)
    again = contrastive_loss(view, o, problem.active, live, frozen)
    for c in (live, *frozen):
        for i in c.prototypes:
            for kind, found in (
                (c.successes, again.success_best),
                (c.failures, again.failure_best),
            ):
                for e, value in zip(kind, found[i].tolist(), strict=True):
                    among = np.isin(e.digests[1:], list(kept))
                    best = np.sort(literal_scores(model, i, e)[among])[::-1][: o.top_k]
                    assert value == pytest.approx(best.mean(), abs=1e-9)
    assert_descends(model, lambda: contrastive_loss(view, o, problem.active, live, frozen).total)


def assert_descends(model, loss, step=1e-7):
    """The gradient is that of the value: a small step along it changes the value by as much."""
    total = loss()
    found, value = gradients(total, model), total.item()
    trained = dict(model.named_parameters())
    square = sum(float(g.square().sum()) for g in found.values())
    with torch.no_grad():
        for name, g in found.items():
            trained[name] -= step / max(1.0, square**0.5) * g
    expected = step / max(1.0, square**0.5) * square
    # Where two frames tie, the best may be another one after the step.
    assert value - loss().item() == pytest.approx(expected, rel=0.05, abs=2e-9)


def literal_scores(model, i, episode):
    with torch.no_grad():
        return model.scores(model.encode(torch.from_numpy(episode.frames)), torch.tensor([i]))[
            0
        ].numpy()


def candidates_of(model, o, active, live, frozen, count):
    """Digests of the frames that are among the best of an episode for a prototype that is scored
    there: its own episodes, and where diversity is taken all are.
    """
    kept = set()
    diverse = o.diversity_coeff > 0 and (active > 1 or o.diversity == "entropy")
    for c in (live, *frozen):
        taken = diverse and (c is live or o.form == "code")
        for e in (*c.successes, *c.failures):
            everyone = taken and any(e is won for won in c.successes)
            for i in range(active) if everyone else c.prototypes:
                best = np.argsort(-literal_scores(model, i, e), kind="stable")
                kept |= set(e.digests[1:][best[: o.top_k - 1 + count]].tolist())
    return kept
