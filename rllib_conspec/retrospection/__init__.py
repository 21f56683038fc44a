"""The paper: prototypes, contrastive loss, memories and intrinsic rewards. Torch and NumPy only.

Nothing in this package knows about Ray or RLlib; `rllib_conspec.algorithm` connects it to them.
"""
