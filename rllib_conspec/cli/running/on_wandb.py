"""Weights & Biases: numbers, settings and galleries of every trial, each as a run of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from ray.air.integrations.wandb import WandbLoggerCallback

ITERATION = "training_iteration"
MODE, KEY = "WANDB_MODE", "WANDB_API_KEY"


class OnWandb(WandbLoggerCallback):
    """Tune's, which goes on in the same W&B run when a trial is resumed, writes to files when there
    is no key (`wandb sync` sends them later), and takes pictures.
    """

    def __init__(self, project: str, group: str):
        # Trials keep their identifiers when they are resumed. PBT changes settings as it goes.
        super().__init__(project=project, group=group, log_config=True, resume="allow")

    def setup(self, *args: Any, **kwargs: Any) -> None:
        if not has_key():
            os.environ.setdefault(MODE, "offline")  # or Tune asks for the key
        if MODE in os.environ:  # Tune's processes have the environment that Ray started with
            self.kwargs["mode"] = os.environ[MODE]
        super().setup(*args, **kwargs)

    def show(self, trial: Any, iteration: int, pictures: Mapping[str, np.ndarray]) -> None:
        self.log_trial_result(iteration, trial, {**pictures, ITERATION: iteration})


def has_key() -> bool:
    """Whether somebody has logged in to W&B here."""
    import wandb

    return KEY in os.environ or bool(wandb.api.api_key)
