from rllib_conspec.unity.client.seats import Seats


def test_agents_sit_down_in_order_and_the_rest_is_spare():
    seats = Seats(2)
    assert [seats.enter(agent) for agent in (10, 11, 12)] == [0, 1, None]
    assert [seats.of(agent) for agent in (10, 11, 12)] == [0, 1, None]
    assert seats.enter(11) == 1


def test_a_new_agent_takes_the_seat_that_became_free():
    seats = Seats(3)
    for agent in range(3):
        seats.enter(agent)
    assert seats.leave(1) == 1
    assert seats.leave(1) is None
    assert seats.enter(9) == 1
    assert seats.of(1) is None
    seats.clear()
    assert seats.enter(9) == 0
