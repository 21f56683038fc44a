"""Only what carries gradient is computed with a graph, and only candidates are scored again."""

import builders
import literal
import numpy as np
import pytest
import torch
from builders import Problem, problems
from evaluating import assert_same_gradients, evaluate, gradients, spread_model
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec.contrast import (
    contrastive_loss,
)
from rllib_conspec.reward_models.conspec.view import Contrast, View


def count_encoded(model) -> list[int]:
    """How many frames each call of `model.encode` was given, filled as it is called."""
    counts, encode = [], model.encode

    def counting(frames):
        counts.append(len(frames))
        return encode(frames)

    model.encode = counting
    return counts


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


def assert_descends(model, loss):
    """The gradient is that of the value: a small step along it changes the value by as much.

    Not where two frames tie or a best match is just 0, which no other point nearby shares.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    for _ in range(3):
        found, expected = descent(trained, loss)
        if found == pytest.approx(expected, rel=0.05, abs=2e-9):
            return
        with torch.no_grad():
            for parameter in trained:
                parameter += 1e-4 * torch.randn_like(parameter)
    assert found == pytest.approx(expected, rel=0.05, abs=2e-9)


def descent(trained, loss, step=1e-7):
    """By how much a step along the gradient lowers the loss, and by how much it should."""
    total = loss()
    gradient = torch.autograd.grad(total, trained, allow_unused=True)
    taken = [(p, g) for p, g in zip(trained, gradient, strict=True) if g is not None]
    square = sum(float(g.square().sum()) for _, g in taken)
    length = step / max(1.0, square**0.5)
    with torch.no_grad():
        for parameter, g in taken:
            parameter -= length * g
    return total.item() - loss().item(), length * square


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
