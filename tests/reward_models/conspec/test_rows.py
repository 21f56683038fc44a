"""Rows of places: the same best matches and gradients as prototype by prototype."""

import literal
import pytest
import torch

from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec import rows as R


def places(prototype, frames, count):
    """A row [1, T] by hand: frame n of prototype i has place 1 + i · count + n."""
    return torch.tensor([[1 + prototype * count + n for n in frames]])


def looked_for():
    """Scores of two prototypes at five frames, and where each looks for its best matches."""
    s = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    won = {0: [[0, 1, 1], [2]], 1: [[3, 4]]}
    lost = {0: [[4]], 1: [[0, 2], [1], [4, 3, 3, 0]]}
    rows = [
        [R.joined([places(i, frames, 5) for frames in own]) for i, own in kind.items()]
        for kind in (won, lost)
    ]
    return s.requires_grad_(), won, lost, R.Matches.of([0, 1], *rows, s.dtype)


def test_nowhere_scores_less_than_anything():
    s = torch.tensor([[0.1, -0.5], [0.3, 0.4]])
    at = torch.tensor([[0, 1], [4, 3]])
    expected = torch.tensor([[-torch.inf, 0.1], [0.4, 0.3]])
    assert torch.equal(R.scores_at(s, at), expected)


def test_rows_are_padded_with_nowhere():
    joined = R.joined([torch.tensor([[5, 6, 7]]), torch.tensor([[1], [2]])])
    assert joined.tolist() == [[5, 6, 7], [1, 0, 0], [2, 0, 0]]


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_best_matches_losses_and_gradients_are_those_of_each_prototype_alone(top_k):
    s, won, lost, matches = looked_for()
    best = matches.best(s, top_k)
    found = L.success_loss(best[0], matches.shares[0]) + L.failure_loss(best[1], matches.shares[1])
    expected = torch.zeros(())
    for kind, by_prototype in zip((won, lost), matches.by_prototype(best), strict=True):
        assert by_prototype.keys() == kind.keys()
        for i, own in kind.items():
            each = torch.stack([literal.best_match(s[i, frames], top_k) for frames in own])
            torch.testing.assert_close(by_prototype[i], each)
            loss = L.success_loss if kind is won else L.failure_loss
            expected = expected + loss(each[None])
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(total, s)[0] for total in (found, expected)]
    torch.testing.assert_close(*gradients)
