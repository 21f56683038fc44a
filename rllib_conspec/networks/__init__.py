"""Encoders and policies, shared by the agent and by ConSpec."""

# Accepted keys of `model_config` with their types, for checks before anything heavy is imported.
MODEL_CONFIG_KEYS = {"encoder": str, "encoder_dim": int, "gru_dim": int}
