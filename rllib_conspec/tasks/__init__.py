"""The tasks as Gymnasium environments, used by id: ``"rllib_conspec:MultiKeyToDoor-v0"``.

Gymnasium imports the part before the colon, and that import registers the ids. Entry points are
strings so that registering costs nothing until an environment is made.
"""

import gymnasium as gym

from rllib_conspec.unity.client import builtin

ENTRY_POINTS = {
    "Atari-v0": (
        "rllib_conspec.tasks.atari.env:AtariColourEnv",
        "rllib_conspec.tasks.atari.vector:AtariColourVectorEnv",
    ),
    "DelayedControl-v0": (
        "rllib_conspec.tasks.control.env:DelayedControlEnv",
        "rllib_conspec.tasks.control.vector:make_vector",
    ),
    "MultiKeyToDoor-v0": (
        "rllib_conspec.tasks.keys.env:MultiKeyToDoorEnv",
        "rllib_conspec.tasks.keys.vector:MultiKeyToDoorVectorEnv",
    ),
    "OrangeTree-v0": (
        "rllib_conspec.tasks.orangetree.env:OrangeTreeEnv",
        "rllib_conspec.tasks.orangetree.vector:OrangeTreeVectorEnv",
    ),
    "Unity-v0": (
        "rllib_conspec.unity.client.env:UnityEnv",
        "rllib_conspec.unity.client.vector:UnityVectorEnv",
    ),
}
# What Unity-v0 plays where no build is named.
PLAYER = "rllib_conspec.tasks.orangetree.player"


def register() -> None:
    """Register every task with Gymnasium, and our player; calling it again changes nothing."""
    builtin.use(PLAYER)
    for name, (entry_point, vector_entry_point) in ENTRY_POINTS.items():
        if name not in gym.registry:
            gym.register(name, entry_point=entry_point, vector_entry_point=vector_entry_point)
