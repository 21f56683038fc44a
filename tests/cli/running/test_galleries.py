"""Galleries of every checkpoint, in TensorBoard."""

from types import SimpleNamespace

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rllib_conspec.cli.running import galleries
from rllib_conspec.cli.running.galleries import Galleries, OnTensorboard


class Trial:
    def __init__(self, path):
        self.local_path = path


def saved(trial, callback, directory, iteration):
    """Tell the callback of a checkpoint made after this iteration."""
    trial.last_result = {"training_iteration": iteration}
    checkpoint = SimpleNamespace(path=str(directory / "checkpoint_000000"))
    callback.on_checkpoint(iteration=0, trials=[trial], trial=trial, checkpoint=checkpoint)


def test_pictures_are_shown_with_their_iteration(tmp_path, monkeypatch):
    picture = tmp_path / "prototypes.png"
    monkeypatch.setattr(galleries, "galleries_of", lambda checkpoint: [picture])
    trial, seen, tensorboard = Trial(str(tmp_path)), [], OnTensorboard()
    callback = Galleries(tensorboard.show, lambda *shown: seen.append(shown))
    for iteration, colour in ((3, "red"), (7, "blue")):
        Image.new("RGB", (30, 20), colour).save(picture)
        saved(trial, callback, tmp_path, iteration)
    tensorboard.on_trial_complete(iteration=0, trials=[trial], trial=trial)
    events = EventAccumulator(str(tmp_path), size_guidance={"images": 0}).Reload()
    shown = events.Images("found/prototypes")
    assert [(one.step, one.width, one.height) for one in shown] == [(3, 30, 20), (7, 30, 20)]
    (_, first, pictures), (_, second, _) = seen
    assert (first, second) == (3, 7)
    assert pictures["found/prototypes"].shape == (20, 30, 3)
    assert np.array_equal(pictures["found/prototypes"][0, 0], [255, 0, 0])


def test_a_checkpoint_that_cannot_be_described_ends_nothing(tmp_path):
    (tmp_path / "checkpoint_000000").mkdir()
    saved(Trial(str(tmp_path)), Galleries([].remove), tmp_path, 1)
    assert not list(tmp_path.glob("events*"))
