"""Unity builds, and other ML-Agents players, as safe and fast Gymnasium environments.

``vector.UnityVectorEnv`` maps the agents of one player to the sub-environments of one worker;
``serving`` is the other end: it turns any Gymnasium vector environment into a player.
"""

from rllib_conspec.unity import compat

compat.install()  # before the first import of mlagents_envs, which every import from here precedes
