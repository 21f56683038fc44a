"""One evaluation of the loss, and its gradients."""

import builders
import torch

from rllib_conspec.reward_models.conspec.contrast import (
    contrastive_loss,
)
from rllib_conspec.reward_models.conspec.view import Contrast, View


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


def spread_model(o, seed):
    """A model whose scores spread over most of −1..1, as after some learning."""
    model = builders.model(o, seed)
    with torch.no_grad():
        model.encoder[1].weight *= 3
    return model
