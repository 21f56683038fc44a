"""What the reward models found, drawn at every checkpoint, for TensorBoard and W&B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ray import tune

from rllib_conspec.cli.running.found import galleries_of

ITERATION = "training_iteration"
# Takes a trial, its iteration, and pictures uint8 [height, width, 3] by name.
Show = Callable[[Any, int, Mapping[str, np.ndarray]], None]


class Galleries(tune.Callback):
    """Draws the galleries of every checkpoint and shows them. Before the pictures of the next
    iteration can come, so that these are shown with the iteration that they belong to.
    """

    def __init__(self, *show: Show):
        self._show = show

    def on_checkpoint(
        self, iteration: int, trials: list, trial: Any, checkpoint: Any, **info: Any
    ) -> None:
        pictures = {f"found/{p.stem}": pixels(p) for p in galleries_of(Path(checkpoint.path))}
        if pictures:
            for show in self._show:
                show(trial, trial.last_result.get(ITERATION, 0), pictures)


class OnTensorboard(tune.Callback):
    """Pictures in the trial's directory, beside what Tune writes there."""

    def __init__(self) -> None:
        self._writers: dict[Any, Any] = {}

    def show(self, trial: Any, iteration: int, pictures: Mapping[str, np.ndarray]) -> None:
        from tensorboardX import SummaryWriter

        if trial not in self._writers:
            self._writers[trial] = SummaryWriter(trial.local_path, filename_suffix=".galleries")
        for name, picture in pictures.items():
            self._writers[trial].add_image(name, picture, iteration, dataformats="HWC")
        self._writers[trial].flush()

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        if trial in self._writers:
            self._writers.pop(trial).close()

    on_trial_error = on_trial_complete


def pixels(file: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))
