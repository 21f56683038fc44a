"""Encoders and cores: what observations and memories are made into features with."""

# Accepted keys of `model_config` with their types, for checks before anything heavy is imported.
MODEL_CONFIG_KEYS = {
    "encoder": str,
    "encoder_dim": int,
    "core": str,
    "core_dim": int,
    "core_options": dict,
    "max_seq_len": int,
}
