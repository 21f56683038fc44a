"""A policy that knows the whole state: takes the flat object and picks the orange.

For tests, pictures and ``orangetree-player --play``.
"""

import math

import numpy as np

from rllib_conspec.tasks.orangetree.game import View
from rllib_conspec.tasks.orangetree.layout import (
    FLAT,
    FORWARD,
    FORWARDS,
    KINDS,
    NUM_HEADINGS,
    RIGHTS,
    TURN_LEFT,
    TURN_RIGHT,
)
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv


def action(view: View, flat: bool = True) -> int:
    """What to do next: go to the flat object, or with ``flat=False`` to the other one.

    Turns until the goal is straight ahead, then walks. Without a goal it turns to the left: that
    takes nothing and picks nothing.
    """
    goals = [t for t in view.things if t.row < len(KINDS) and FLAT[t.row] == flat]
    # In the object room one object is enough.
    if not goals or (view.carried is not None and view.stage.name == "object room"):
        return TURN_LEFT
    return towards(view, goals[0].x, goals[0].y)


def towards(view: View, x: float, y: float) -> int:
    """Turn to a place, or walk if it is ahead."""
    east, north = x - view.xy[0], y - view.xy[1]
    forward, right = FORWARDS[view.heading], RIGHTS[view.heading]
    ahead = east * forward[0] + north * forward[1]
    aside = east * right[0] + north * right[1]
    turns = round(math.atan2(-aside, ahead) / (2 * math.pi / NUM_HEADINGS))
    if turns == 0:
        return FORWARD
    return TURN_LEFT if turns > 0 else TURN_RIGHT


def actions(envs: OrangeTreeVectorEnv, flat: bool = True) -> np.ndarray:
    """``action`` for every environment, int ``[num_envs]``."""
    return np.array([action(envs.view(i), flat) for i in range(envs.num_envs)])
