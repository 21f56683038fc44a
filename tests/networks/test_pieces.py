import pytest
import torch

from rllib_conspec.networks import pieces
from rllib_conspec.networks.encoders import build_encoder


@pytest.mark.parametrize("piece", [1, 7, 23, 1000])
@pytest.mark.parametrize("name", ["strided", "mlp"])
def test_features_and_gradients_are_those_of_the_encoder_alone(monkeypatch, name, piece):
    torch.manual_seed(0)
    shape = (20, 24, 3) if name == "strided" else (4,)
    encoder = build_encoder(name, shape, 8).double()
    observations = torch.rand(23, *shape, dtype=torch.float64)
    size = observations[0].numel()
    monkeypatch.setitem(pieces.SMALL, "cpu", piece * size)
    monkeypatch.setattr(pieces, "WITH_GRAPH", piece * size)
    whole, found = encoder(observations), pieces.encode(encoder, observations)
    torch.testing.assert_close(found, whole)
    gradients = [
        torch.autograd.grad(z.square().sum(), [*encoder.parameters()]) for z in (whole, found)
    ]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(pieces.encode(encoder, observations), whole.detach())


def test_memory_of_a_graph_does_not_grow_with_the_number_of_frames(monkeypatch):
    """Only the pieces' inputs are kept for the backward pass."""
    monkeypatch.setattr(pieces, "WITH_GRAPH", 10 * 20 * 20 * 3)
    encoder = build_encoder("strided", (20, 20, 3), 8)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        pieces.encode(encoder, torch.zeros(100, 20, 20, 3, dtype=torch.uint8))
    assert sum(kept) < 100 * 20 * 20 * 3 * 1.5


def test_a_gpu_gets_larger_pieces():
    small, large = (pieces.piece_size((84, 84, 3), torch.device(d)) for d in ("cpu", "cuda"))
    assert small < 100 < large < 2000


def test_a_piece_of_small_observations_is_no_larger_than_its_layers_allow():
    assert pieces.piece_size((5, 5, 3), torch.device("cpu")) == pieces.MOST["cpu"]
    assert pieces.piece_size((5, 5, 3), torch.device("cuda")) > 100 * pieces.MOST["cpu"]
