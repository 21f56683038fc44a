"""Scores: cosines of prototypes and projections."""

import builders
import literal
import numpy as np
import pytest
import torch
from builders import FORMS

from rllib_conspec.networks import pieces
from rllib_conspec.networks.side_by_side import cores_at_hand
from rllib_conspec.reward_models.conspec.prototypes import MANY, SHORTEST, Cosines
from rllib_conspec.reward_models.distinct import DistinctFrames


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_the_formula_for_any_choice_of_prototypes(form):
    o = builders.options(num_prototypes=4, form=form)
    model = builders.model(o)
    (episode,) = builders.episodes(o, [7], 1)
    expected = np.array(
        [[x.item() for x in row] for row in literal.episode_scores(model, o, episode)]
    )
    z = model.encode(torch.tensor(episode.frames))
    for which in ([0, 1, 2, 3], [2], [3, 0]):
        found = model.scores(z, torch.tensor(which))
        np.testing.assert_allclose(found.detach(), expected[which], atol=1e-12)
    assert np.abs(expected).max() <= 1 + 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_needed_scores_are_computed_where_needed_and_zero_elsewhere(form):
    o = builders.options(num_prototypes=4, form=form)
    model = builders.model(o)
    z = model.encode(torch.from_numpy(builders.frames(o, 9, 1)))
    rng = np.random.default_rng(0)
    need = torch.from_numpy(rng.random((4, 9)) < 0.5)
    need[1] = need[3]  # two that share a product
    need[2] = False  # one that needs nothing
    found = model.needed_scores(z, need)
    expected = torch.where(need, model.scores(z, torch.arange(4)), 0.0)
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-12)

    weights = torch.from_numpy(rng.normal(size=(4, 9)))
    both = [
        torch.autograd.grad((weights * s).sum(), list(model.parameters()), retain_graph=True)
        for s in (found, expected)
    ]
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [9, 2 * MANY + 1])
def test_halves_of_the_frames_have_the_scores_and_the_gradient_of_all(form, count):
    o = builders.options(num_prototypes=4, form=form)
    model = builders.model(o)
    frames = torch.from_numpy(builders.frames(o, count, 1))
    rng = np.random.default_rng(0)
    need = torch.from_numpy(rng.random((4, count)) < 0.7)
    weights = torch.from_numpy(rng.normal(size=(4, count)))
    parameters = list(model.parameters())
    expected = model.needed_scores(model.encode(frames), need)
    theirs = torch.autograd.grad((weights * expected).sum(), parameters)
    for cores in (1, 2):
        with cores_at_hand(cores):
            found = model.needed_scores_of(frames, need)
            mine = torch.autograd.grad((weights * found).sum(), parameters)
        np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-12)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


def test_projections_are_one_per_prototype_or_one_for_all():
    for form, count in (("mixed", 5), ("code", 5), ("paper", 1)):
        o = builders.options(num_prototypes=5, form=form)
        model = builders.model(o)
        assert model.layer1.shape == (count, o.encoder_dim, o.projection_dim)
        assert model.layer2.shape == (count, o.projection_dim, o.projection_dim)
        assert model.vectors.shape == (5, o.projection_dim)


def test_own_projections_start_different():
    model = builders.model(builders.options(num_prototypes=2))
    assert (model.layer1[0] != model.layer1[1]).all()
    assert (model.vectors[0] != model.vectors[1]).all()


def test_scale_of_vector_and_projection_does_not_matter():
    o = builders.options(num_prototypes=2)
    model = builders.model(o)
    z = model.encode(torch.from_numpy(builders.frames(o, 5, 1)))
    before = model.scores(z, torch.arange(2)).detach()
    with torch.no_grad():
        model.vectors *= 7
        model.layer2 *= 0.3
    np.testing.assert_allclose(model.scores(z, torch.arange(2)).detach(), before, atol=1e-12)


def test_a_projection_of_zero_scores_zero_with_a_finite_gradient():
    o = builders.options(num_prototypes=2, form="code")
    model = builders.model(o)
    with torch.no_grad():
        model.layer2[0] = -model.layer2[0].abs()  # the second ReLU shuts every unit
    z = model.encode(torch.from_numpy(builders.frames(o, 5, 1)))
    s = model.scores(z, torch.arange(2))
    assert (s[0] == 0).all()
    s.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def plain_cosines(out, unit):
    """The formula, for autograd to go through."""
    product = (out @ unit[..., None]).squeeze(-1)
    return product / torch.linalg.vector_norm(out, dim=-1).clamp_min(SHORTEST)


def test_cosines_and_their_gradients_are_the_formula():
    generator = torch.Generator().manual_seed(0)
    out, unit, weight = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3, 5, 4), (3, 4), (3, 5))
    )
    out[1, 2] = 0  # no direction
    out[2, 0] *= 1e-14  # shorter than counts
    inputs = out.requires_grad_(), (unit / unit.norm(dim=-1, keepdim=True)).requires_grad_()
    found, expected = Cosines.apply(*inputs), plain_cosines(*inputs)
    torch.testing.assert_close(found, expected)
    pairs = (torch.autograd.grad((s * weight).sum(), inputs) for s in (found, expected))
    for a, b in zip(*pairs, strict=True):
        torch.testing.assert_close(a, b)


def test_the_gradient_of_cosines_is_their_slope():
    generator = torch.Generator().manual_seed(1)
    out, unit = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((2, 3, 4), (2, 4))
    )
    assert torch.autograd.gradcheck(Cosines.apply, (out, unit))


def test_stop_gradient_holds_only_the_vectors():
    model = builders.model(builders.options(stop_gradient=True))
    held = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert held == ["vectors"]
    assert all(p.requires_grad for p in builders.model(builders.options()).parameters())


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_some_prototypes_make_a_smaller_model(form):
    o = builders.options(num_prototypes=4, form=form)
    model = builders.model(o)
    frames = torch.from_numpy(builders.frames(o, 5, 1))
    which = np.array([1, 3])
    small = builders.model(builders.options(num_prototypes=2, form=form), seed=9)
    small.load_state_dict(model.weights_of(which))
    found = small.scores(small.encode(frames), torch.arange(2))
    expected = model.scores(model.encode(frames), torch.arange(4))[which]
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-12)


def test_encoding_in_pieces_is_the_same(monkeypatch):
    o = builders.options(num_prototypes=2)
    model = builders.model(o)
    frames = torch.from_numpy(builders.frames(o, 9, 1))
    whole = model.encode(frames)
    monkeypatch.setitem(pieces.SMALL, "cpu", 2 * frames[0].numel())
    with torch.no_grad():
        np.testing.assert_allclose(model.encode(frames), whole.detach(), atol=1e-12)


def test_frames_of_packed_episodes_are_read_and_encoded_in_pieces(monkeypatch):
    o = builders.options()
    model = builders.model(o)
    episodes = [e.packed() for e in builders.episodes(o, [5, 23, 9], 1)]
    monkeypatch.setitem(pieces.SMALL, "cpu", 7 * 4)
    distinct = DistinctFrames.of(episodes)
    z = model.encode_all(distinct)
    assert not z.requires_grad
    for e in episodes:
        expected = model.encoder(torch.tensor(e.frames)).detach()
        np.testing.assert_allclose(z[distinct.index[id(e)]], expected, atol=1e-12)
