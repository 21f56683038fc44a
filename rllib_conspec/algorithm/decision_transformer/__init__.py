"""The Decision Transformer as an algorithm: it learns from recorded episodes, and plays to show
what it has learned.
"""

from rllib_conspec.algorithm.decision_transformer.algorithm import DecisionTransformer
from rllib_conspec.algorithm.decision_transformer.config import DecisionTransformerConfig

__all__ = ["DecisionTransformer", "DecisionTransformerConfig"]
