"""The trainer's side of ML-Agents: starts players, and plays their agents as environments."""
