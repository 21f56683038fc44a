"""What an RLlib checkpoint holds of its reward models, and the configuration that it ran with."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from rllib_conspec.errors import UserError
from rllib_conspec.reward_models import find_model
from rllib_conspec.reward_models.base import RewardModel
from rllib_conspec.reward_models.together import models_in


class NoRewardModel(UserError):
    """A whole checkpoint, of a run without a reward model."""


def read_models(checkpoint: str | Path) -> list[tuple[type[RewardModel], dict[str, Any]]]:
    """The reward models in an RLlib checkpoint directory, each with its state."""
    path = Path(checkpoint) / "learner_group" / "learner" / "state.pkl"
    try:
        state = pickle.loads(path.read_bytes())
    except OSError:
        raise UserError(f"{checkpoint}: not an RLlib checkpoint (no {path.name} in it).") from None
    except (ImportError, AttributeError) as error:
        raise UserError(f"{checkpoint}: needs something that is not here: {error}.") from error
    except Exception as error:  # damaged bytes can raise almost anything
        raise UserError(f"{checkpoint}: the checkpoint is cut short ({error}).") from error
    if not isinstance(state, dict) or state.get("reward_model") is None:
        raise NoRewardModel(f"{checkpoint}: this run had no reward model, so it found no steps.")
    try:
        models = models_in(state["reward_model"])
        return [(find_model(name), own) for name, own in models.items()]
    except UserError as error:
        raise UserError(f"{checkpoint}: {error}") from error


def read_config(checkpoint: str | Path) -> Any | None:
    """The AlgorithmConfig of a checkpoint; None where it cannot be read: it is for pictures only,
    and there are plainer ones that need no configuration.
    """
    try:
        from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

        stored = pickle.loads((Path(checkpoint) / "class_and_ctor_args.pkl").read_bytes())
        (state, *_), _ = stored["ctor_args_and_kwargs"]
        return AlgorithmConfig.from_state(state)
    except Exception:  # whatever unpickling a user's classes raises
        return None
