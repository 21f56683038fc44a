"""Unity builds, and other ML-Agents players, as safe and fast Gymnasium environments.

A player is always a process: a Unity build, or a program that speaks as one. ``client`` is the
trainer's side of it: ``client.vector.UnityVectorEnv`` maps the agents of one player to the
sub-environments of one worker, and ``client.process.Player`` is its hold on that process.
``player`` is what is inside of a player that is not a Unity build: ``player.serving`` turns any
Gymnasium vector environment into one. What both sides need lies here.
"""

from rllib_conspec.unity import compat

compat.install()  # before the first import of mlagents_envs, which every import from here precedes
