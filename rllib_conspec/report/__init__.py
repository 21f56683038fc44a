"""Pictures and words from results: what the reward models found, and learning curves."""
