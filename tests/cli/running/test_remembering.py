"""What a scheduler has compared is there again after a run was killed."""

from types import SimpleNamespace

import pytest
from ray.train._internal.session import _FutureTrainingResult
from ray.tune.experiment import Trial

from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running.interrupt import Interrupt, pausing
from rllib_conspec.cli.running.remembering import Remembering
from rllib_conspec.cli.running.sweep import make_scheduler

METRIC = "env_runners/episode_return_mean"


class Controller:
    """Knows its trials, and counts how often it was asked to save."""

    search_alg = None

    def __init__(self, trials):
        self.trials, self.saved = trials, 0

    def get_trials(self):
        return self.trials

    def get_live_trials(self):
        return self.trials

    def _schedule_trial_save(self, trial, result):
        return _FutureTrainingResult(None)

    def pause_trial(self, trial, should_checkpoint):
        trial.status = Trial.PAUSED

    def checkpoint(self, force):
        assert force
        self.saved += 1


def sweep(name, count=4, **options):
    """A scheduler with its memory, and trials that it has met."""
    experiment = Experiment(
        "x",
        num_samples=count,
        stop={"training_iteration": 9},
        scheduler={name: options},
        config={"lr": {"uniform": [0.0, 1.0]}},
    )
    scheduler = make_scheduler(experiment)
    remembering = Remembering(scheduler)
    scheduler = pausing(scheduler, Interrupt())
    scheduler.set_search_properties(METRIC, "max")
    trials = [Trial("PPO", stub=True, trial_id=str(i), config={"lr": 0.5}) for i in range(count)]
    controller = Controller(trials)
    for trial in trials:
        scheduler.on_trial_add(controller, trial)
    for trial in trials[: count - 1]:
        trial.status = Trial.RUNNING  # the last one waits
    return scheduler, remembering, controller


def tell(scheduler, controller, trial, score, iteration=1):
    result = {"training_iteration": iteration, METRIC: score}
    return scheduler.on_trial_result(controller, controller.trials[trial], result)


def killed_and_resumed(remembering, name, **options):
    state = remembering.get_state()
    scheduler, resumed, controller = sweep(name, **options)
    resumed.set_state(state)
    assert resumed.get_state() == state, "saved again before it is used"
    resumed.on_step_begin(iteration=0, trials=controller.trials)
    return scheduler, controller


@pytest.mark.parametrize("name", ["asha", "median_stopping"])
def test_a_bad_trial_is_ended_by_what_was_measured_before(name):
    options = {"reduction_factor": 2.0} if name == "asha" else {"min_samples_required": 2}
    scheduler, remembering, controller = sweep(name, **options)
    for good in range(3):
        assert tell(scheduler, controller, good, 0.9) == scheduler.CONTINUE
    again, controller = killed_and_resumed(remembering, name, **options)
    assert tell(again, controller, 3, 0.1) == again.STOP
    forgetful, _, controller = sweep(name, **options)
    assert tell(forgetful, controller, 3, 0.1) == forgetful.CONTINUE


def test_pbt_knows_scores_and_times_but_no_answer_that_is_still_awaited():
    options = {"perturbation_interval": 2}
    scheduler, remembering, controller = sweep("pbt", **options)
    for trial in range(4):
        tell(scheduler, controller, trial, 0.1 * trial, iteration=2)
    states = {t.trial_id: s for t, s in scheduler._trial_state.items()}
    assert isinstance(states["3"].last_checkpoint, _FutureTrainingResult)
    again, controller = killed_and_resumed(remembering, "pbt", **options)
    for trial, state in again._trial_state.items():
        assert trial in controller.trials
        assert state.last_score == states[trial.trial_id].last_score
        assert state.last_perturbation_time == 2
    assert again._trial_state[controller.trials[3]].last_checkpoint is None
    # Not compared again before its time.
    assert tell(again, controller, 0, 0.0, iteration=3) == again.CONTINUE


def test_trials_that_were_not_there_before_are_met():
    _, remembering, _ = sweep("asha", count=2)
    state = remembering.get_state()
    scheduler, resumed, controller = sweep("asha", count=3)
    resumed.set_state(state)
    resumed.on_step_begin(iteration=0, trials=controller.trials)
    assert scheduler._trial_info.keys() == {"0", "1", "2"}


def test_another_scheduler_begins_anew_and_settings_are_those_of_now():
    _, remembering, _ = sweep("asha", max_t=9)
    again, _ = killed_and_resumed(remembering, "asha", max_t=20)
    assert again._max_t == 20
    other, resumed, controller = sweep("median_stopping")
    resumed.set_state(remembering.get_state())
    resumed.on_step_begin(iteration=0, trials=controller.trials)
    assert not hasattr(other, "_brackets")


def test_everything_is_saved_as_soon_as_a_trial_has_ended():
    _, remembering, controller = sweep("asha")
    step = {"iteration": 1, "trials": controller.trials}
    remembering.on_step_end(**step)
    assert controller.saved == 0
    for happened in (remembering.on_trial_complete, remembering.on_trial_error):
        happened(**step, trial=controller.trials[0])
        remembering.on_step_end(**step)
        remembering.on_step_end(**step)
    assert controller.saved == 2


def test_fifo_has_nothing_to_lose():
    experiment = SimpleNamespace(scheduler="fifo", stop={}, metric=METRIC)
    remembering = Remembering(make_scheduler(experiment))
    remembering.set_state(remembering.get_state())
    remembering.on_step_begin(iteration=0, trials=[])
