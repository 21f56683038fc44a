"""The `rllib` command: train, evaluate, example, completion."""
