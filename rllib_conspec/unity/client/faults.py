"""What can go wrong with a player, apart from what the user can put right."""


class PlayerFault(Exception):
    """The player cannot be used any more; a new one may do better. Says what it did."""


class PlayerDied(PlayerFault):
    """Its process ended."""


class PlayerHangs(PlayerFault):
    """It lives but does not answer in time."""


class PlayerTalksNonsense(PlayerFault):
    """It sent something that does not fit what it said before."""
