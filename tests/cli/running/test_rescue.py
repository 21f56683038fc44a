"""What is saved of a trial that fails; tests/cli/test_failures.py does it for real."""

from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import RayActorError
from ray.tune.schedulers import FIFOScheduler

from rllib_conspec.cli.running.rescue import saving_on_error


class Controller:
    """As much of Tune's controller as is asked of it."""

    def __init__(self, alive=True):
        self.alive = alive
        self.calls = []

    def _schedule_trial_save(self, trial):
        trial.temporary_state.saving_to = "here"
        return SimpleNamespace(future="future") if self.alive else None

    def _process_trial_save(self, trial, saved):
        self.calls.append(saved)


def trial(done, saved):
    result = None if saved is None else SimpleNamespace(metrics={"training_iteration": saved})
    return SimpleNamespace(
        last_result={"training_iteration": done} if done else {},
        latest_checkpoint_result=result,
        temporary_state=SimpleNamespace(saving_to=None),
    )


@pytest.fixture
def fail():
    """Tell the scheduler that a trial failed; returns whether Tune was told of it as well."""
    told = []
    scheduler = FIFOScheduler()
    scheduler.on_trial_error = lambda controller, trial: told.append(trial)
    scheduler = saving_on_error(scheduler)

    def call(controller, failed):
        scheduler.on_trial_error(controller, failed)
        assert told.pop() is failed

    return call


@pytest.mark.parametrize(
    ("done", "saved", "expected"),
    [(3, None, True), (3, 2, True), (3, 3, False), (0, None, False)],
)
def test_what_no_checkpoint_has_is_saved(fail, monkeypatch, done, saved, expected):
    monkeypatch.setattr(ray, "get", lambda future, timeout: "checkpoint")
    controller = Controller()
    fail(controller, trial(done, saved))
    assert controller.calls == ["checkpoint"] * expected


def test_a_trial_that_cannot_save_fails_by_its_own_error(fail, monkeypatch):
    def gone(future, timeout):
        raise RayActorError

    monkeypatch.setattr(ray, "get", gone)
    controller, failed = Controller(), trial(3, None)
    fail(controller, failed)
    assert controller.calls == [] and failed.temporary_state.saving_to is None
    fail(Controller(alive=False), trial(3, None))
