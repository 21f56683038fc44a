"""ConSpec, the paper: prototypes, contrastive loss, memories and intrinsic rewards.

Torch and NumPy only: whoever wants the mathematics reads `loss`, `rewards`, `prototypes`,
`contrast` and `learner`, and never meets Ray.
"""
