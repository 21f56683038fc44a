"""Pictures and words from results: what the prototypes found, and learning curves."""
