"""Inside of a player, where Unity usually is: any Gymnasium vector environment for its agents."""
