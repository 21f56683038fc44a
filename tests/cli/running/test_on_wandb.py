"""Weights & Biases, in its offline mode: the library itself, no account and no network."""

import queue
from types import SimpleNamespace

import numpy as np
import pytest
from ray.air.integrations.wandb import _QueueItem, _WandbLoggingActor

from rllib_conspec.cli.running.on_wandb import OnWandb


@pytest.fixture
def started(monkeypatch):
    """A callback, and what it starts Tune's logging process with for a trial."""
    settings = {}

    def start(self, trial, exclude_results, **given):
        self._trial_queues[trial] = queue.Queue()
        self._trial_logging_actors[trial] = None
        settings.update(given, exclude=exclude_results)

    monkeypatch.setattr(OnWandb, "_start_logging_actor", start)
    monkeypatch.setenv("WANDB_MODE", "offline")
    callback = OnWandb("project", "keys1")
    callback.setup()
    trial = TRIAL
    callback.log_trial_start(trial)
    return callback, settings


class Trial:
    trial_id, experiment_dir_name = "ab12", "keys1"
    config = {"lr": 0.1, "conspec": {"intrinsic_coeff": 0.5}}

    def __str__(self):
        return "trial_0"


TRIAL = Trial()


def test_without_a_key_it_writes_to_files(monkeypatch):
    import wandb

    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "")  # so that both are put back
        monkeypatch.delenv(name)
    monkeypatch.setattr(wandb, "api", SimpleNamespace(api_key=None))
    callback = OnWandb("project", "keys1")
    callback.setup()
    assert callback.kwargs["mode"] == "offline"
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    callback = OnWandb("project", "keys1")
    callback.setup()
    assert "mode" not in callback.kwargs


def test_a_trial_is_one_run_with_settings_numbers_and_pictures(started, tmp_path, monkeypatch):
    callback, settings = started
    assert settings["id"] == "ab12" and settings["resume"] == "allow"
    assert settings["config"]["conspec"]["intrinsic_coeff"] == 0.5
    monkeypatch.chdir(tmp_path)
    result = {"training_iteration": 1, "env_runners": {"success_rate": 0.5}, "config": Trial.config}
    callback.log_trial_result(1, TRIAL, result)
    callback.show(TRIAL, 1, {"found/prototypes": np.zeros((20, 30, 3), np.uint8)})
    waiting = callback._trial_queues[TRIAL]
    waiting.put((_QueueItem.END, None))
    exclude = settings.pop("exclude")
    assert "config" not in exclude, "values that PBT changes are told"
    keys, place = callback.AUTO_CONFIG_KEYS, str(tmp_path)  # which is where its process stands
    _WandbLoggingActor(place, waiting, exclude, keys, dir=place, **settings).run()
    (run,) = tmp_path.glob("wandb/offline-run-*-ab12")
    (picture,) = run.glob("files/media/images/found/prototypes_1_*.png")
    assert picture.stat().st_size > 50
