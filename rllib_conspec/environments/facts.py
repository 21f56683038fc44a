"""What is known of an environment, once somebody has looked."""

from __future__ import annotations

from dataclasses import dataclass

from gymnasium import spaces


@dataclass(frozen=True)
class Facts:
    """Found by looking, before anything starts; plain and picklable."""

    observation_space: spaces.Box  # after wrappers: key taken, Dict flattened
    action_space: spaces.Space
    max_episode_steps: int | None  # the longest episode; None: has no known limit
    vectorised: bool  # the environment's own vector form is what is used
    # Values of pictures lie between 0 and this (255 for ordinary ones), of vectors within ± this
    # (1 unless they go beyond ± 10).
    observation_range: float
    channels: str  # of pictures: "first", "last", or "" if that cannot be told
    normalize: bool = False  # vectors with components that have no bounds
    # What is played, and by which program: recorded episodes of another one mean something else.
    plays: str = ""
    version: str = ""
    observation_names: tuple[str, ...] = ()  # of a vector's components, if the environment has them
