"""Which agent of the player plays in which sub-environment."""

from __future__ import annotations


class Seats:
    """Agents sit down in the order in which they come; a new episode is a new agent.

    Agents beyond the number of seats are spare: they have no seat.
    """

    def __init__(self, count: int):
        self._agent: list[int | None] = [None] * count
        self._seat: dict[int, int] = {}

    def clear(self) -> None:
        """Everybody gets up."""
        self._agent = [None] * len(self._agent)
        self._seat.clear()

    def of(self, agent: int) -> int | None:
        """The agent's seat, if it has one."""
        return self._seat.get(agent)

    def enter(self, agent: int) -> int | None:
        """The agent's seat, the first free one if it is new, None if all are taken."""
        if agent not in self._seat and None in self._agent:
            seat = self._agent.index(None)
            self._agent[seat], self._seat[agent] = agent, seat
        return self._seat.get(agent)

    def leave(self, agent: int) -> int | None:
        """Free the agent's seat and return it."""
        seat = self._seat.pop(agent, None)
        if seat is not None:
            self._agent[seat] = None
        return seat
