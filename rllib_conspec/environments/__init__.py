"""The way in for any Gymnasium environment: find it, look at it, make many of it.

`env` is a registered id (`CartPole-v1`, `ALE/Pong-v5`, `module:Id-v0`), an import path
`module:Class`, or a class or function that RLlib would call as `env(config)`.
"""

from rllib_conspec.environments.facts import Facts
from rllib_conspec.environments.finding import find
from rllib_conspec.environments.looking import look
from rllib_conspec.environments.making import critical_events, make_single, make_vector
from rllib_conspec.environments.observations import channels_of, is_unbounded

__all__ = [
    "Facts",
    "channels_of",
    "critical_events",
    "find",
    "is_unbounded",
    "look",
    "make_single",
    "make_vector",
]
