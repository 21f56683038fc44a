"""Pieces side by side: the same results on any number of cores, in the same order."""

import threading

import pytest
import torch
from torch import nn

from rllib_conspec.networks.side_by_side import cores_at_hand, side_by_side, with_graph

CORES = (1, 2, 3)


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("cores", CORES)
def test_results_come_in_order(cores):
    with cores_at_hand(cores):
        assert side_by_side(lambda a, b: a - b, range(20), range(0, 40, 2)) == list(
            range(0, -20, -1)
        )
        assert side_by_side(lambda a: a, [7]) == [7]


def _computed_by(cores):
    """Threads that two pieces which wait for each other run in; None: they never met."""
    met = threading.Barrier(2)

    def meet(_):
        try:
            met.wait(5 if cores > 1 else 0.05)
        except threading.BrokenBarrierError:
            return None
        return threading.get_ident()

    with cores_at_hand(cores):
        return side_by_side(meet, range(2))


def test_a_second_core_computes_at_the_same_time():
    first, second = _computed_by(2)
    assert None not in (first, second)
    assert first != second == threading.get_ident()


def test_without_a_second_core_all_is_computed_here():
    assert _computed_by(1) == [None, None]


def test_threads_of_torch_go_first():
    torch.set_num_threads(2)
    with cores_at_hand(2):
        seen = side_by_side(lambda _: threading.get_ident(), range(4))
    assert set(seen) == {threading.get_ident()}


@pytest.mark.parametrize("graph", [True, False])
def test_a_graph_is_made_where_it_would_be_made_here(graph):
    with cores_at_hand(2), torch.set_grad_enabled(graph):
        assert side_by_side(lambda _: torch.is_grad_enabled(), range(6)) == [graph] * 6


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("broken", [0, 3])
def test_an_error_in_a_piece_is_raised(cores, broken):
    with cores_at_hand(cores), pytest.raises(ZeroDivisionError):
        side_by_side(lambda n: 1 / (n - broken), range(4))


def test_cores_are_at_hand_only_within():
    with cores_at_hand(2):
        pass
    assert set(side_by_side(lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}


def _network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double()


@pytest.mark.parametrize("dim", [0, 1])
def test_the_gradient_is_that_of_all_at_once(dim):
    network, x = _network(), torch.randn(30, 5, dtype=torch.double)
    unused = nn.Parameter(torch.zeros(2))
    parameters = [*network.parameters(), unused]

    def out(piece):
        return network(piece) if dim == 0 else network(piece).T

    weights = torch.randn_like(out(x))
    with cores_at_hand(2):
        found = with_graph(out, x.split([11, 19]), parameters, dim)
        (weights * found).square().sum().backward()
    assert unused.grad is None
    mine = [p.grad for p in network.parameters()]
    expected = out(x)
    theirs = torch.autograd.grad((weights * expected).square().sum(), list(network.parameters()))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(mine, list(theirs))


def test_the_digits_are_the_same_on_any_number_of_cores():
    network, x = _network().float(), torch.randn(300, 5)
    gradients = []
    for cores in CORES:
        network.zero_grad()
        with cores_at_hand(cores):
            with_graph(network, x.split(150), list(network.parameters())).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in network.parameters()]))
    assert gradients[0].norm() > 0
    assert all(torch.equal(gradients[0], other) for other in gradients[1:])
