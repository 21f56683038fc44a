"""Pictures, words and pages from results: what the reward models found, and learning curves."""
