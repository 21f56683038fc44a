"""How much exploring is worth to PPO: in the measure that success is missing."""

from __future__ import annotations

from typing import Any

from ray.rllib.utils.annotations import override
from ray.rllib.utils.schedules.scheduler import Scheduler

# Of the entropy's coefficient, what stays however often the agent succeeds: what counts as a
# success may be had more or less well.
LEAST = 0.1


def missing(success: float) -> float:
    """What is missing of a mean success, as a factor."""
    return max(LEAST, 1.0 - success)


class Fading(Scheduler):
    """RLlib's coefficient or schedule of coefficients, times a factor."""

    factor = 1.0

    @override(Scheduler)
    def get_current_value(self) -> Any:
        return super().get_current_value() * self.factor

    @override(Scheduler)
    def update(self, timestep: int) -> float:
        return super().update(timestep) * self.factor
