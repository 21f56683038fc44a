"""Batches played ahead: handed out in order, thrown away when something changed."""

import pytest

from rllib_conspec.algorithm.report import Report
from rllib_conspec.algorithm.stock import Round, Stock
from rllib_conspec.episodes import Summary

STEPS = 10


def batch(paid=False, workers=2):
    """Every worker's part: an episode of STEPS / 2 steps."""
    summaries = [Summary(float(paid), STEPS // 2, paid)]
    return [([], {}, Report(summaries=summaries, any_reward=paid)) for _ in range(workers)]


def filled(*batches, most=None, now=0):
    stock = Stock(most or len(batches))
    stock.fill(stock.ask(now), list(batches))
    return stock


def test_batches_come_in_order_and_the_next_round_begins_where_they_end():
    stock = Stock(3)
    first = stock.ask(100)
    assert first[1:] == (100, 3)
    batches = [batch(), batch(), batch()]
    stock.fill(first, batches)
    ahead = stock.ask_ahead()
    assert ahead[1:] == (100 + 3 * STEPS, 3)
    assert [stock.take() for _ in range(3)] == batches
    assert not stock
    assert stock.wants(ahead)
    assert not stock.wants(first)


def test_after_something_was_paid_one_batch_at_a_time():
    stock = filled(batch(), batch(paid=True), batch(), now=50)
    assert stock.paid
    stock.take()
    stock.take()
    stock.spoil()
    one = stock.ask(70)
    assert one[1:] == (70, 1)
    stock.fill(one, [batch()])
    assert not stock.paid
    stock.take()
    assert stock.ask(80).batches == 3


def test_what_was_asked_before_a_change_is_not_wanted():
    stock = filled(batch(), batch())
    ahead = stock.ask_ahead()
    assert stock.spoilable
    stock.take()
    stock.spoil()
    assert not stock
    assert not stock.spoilable
    assert not stock.wants(ahead)
    again = stock.ask(STEPS)
    assert again.position == STEPS
    assert stock.wants(again)
    assert not stock.wants(ahead)


@pytest.mark.parametrize("used", [0, 1, 2])
def test_restored_in_the_middle_of_a_round_it_is_played_again(used):
    batches = [batch(), batch(), batch()]
    stock = filled(*batches, now=100)
    for _ in range(used):
        stock.take()
    other = Stock(3)
    other.set_state(stock.get_state())
    now = 100 + used * STEPS
    again = other.ask(now)
    assert again[1:] == (100, 3)
    assert other.get_state() == stock.get_state(), "saved at once"
    other.fill(again, batches)
    assert other.ask_ahead()[1:] == (130, 3)
    assert [other.take() for _ in range(3 - used)] == batches[used:]


@pytest.mark.parametrize("paid", [False, True])
def test_restored_between_rounds_the_next_one_has_its_size(paid):
    stock = filled(batch(paid), most=3)
    stock.take()
    other = Stock(3)
    other.set_state(stock.get_state())
    assert other.ask(STEPS)[1:] == (STEPS, 1 if paid else 3)


def test_restored_with_fewer_batches_in_a_round_it_goes_on():
    """Other workers than those of the checkpoint: nothing is left of the round."""
    stock = Stock(1)
    stock.set_state({"position": 100, "batches": 3, "used": 2})
    stock.fill(stock.ask(120), [batch()])
    assert not stock
    assert stock.ask(120) == Round(stock._number, 120, 3)
