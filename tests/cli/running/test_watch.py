import io
import json
import signal
from types import SimpleNamespace

import pytest
from rich.console import Console

from rllib_conspec.cli.checks import checkpoints
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running import interrupt as interrupt_module
from rllib_conspec.cli.running.interrupt import Interrupt
from rllib_conspec.cli.running.progress import Progress
from rllib_conspec.cli.running.watch import Watcher, error_line, trial_name
from rllib_conspec.reward_models.base import RewardModel


class Curious(RewardModel):
    metrics_shown = ("surprise",)


class Watched:
    """A watcher of trials that Tune would run, and what it prints."""

    def __init__(self, count=1, verbose=0, space=(), **settings):
        self.interrupt = Interrupt()
        self.console = Console(file=io.StringIO(), width=200)
        experiment = Experiment("cart", **settings)
        progress = Progress(self.console, "title")
        self.watcher = Watcher(progress, self.interrupt, experiment, [Curious], verbose, space)
        self.trials = [
            SimpleNamespace(
                trial_id=str(i),
                experiment_tag=f"{i}_lr=0.{i + 1}",
                evaluated_params={"lr": (i + 1) / 10},
                config={"lr": (i + 1) / 10, "seed": 0},
                stopping_criterion={"training_iteration": 5},
                status="RUNNING",
                error_file=None,
            )
            for i in range(count)
        ]

    def tell(self, what, trial=0, **details):
        trials = {"iteration": 1, "trials": self.trials, "trial": self.trials[trial]}
        getattr(self.watcher, what)(**trials, **details)

    def step_ends(self):
        self.watcher.on_step_end(iteration=1, trials=self.trials)

    @property
    def lines(self):
        return self.console.file.getvalue().splitlines()


@pytest.fixture
def ended(monkeypatch):
    """Signals that ask Tune to end its loop."""
    sent = []
    monkeypatch.setattr(interrupt_module.os, "kill", lambda process, number: sent.append(number))
    return sent


def test_results_become_lines_with_the_cells_of_the_models():
    watched = Watched()
    watched.tell("on_trial_start")
    watched.tell("on_trial_result", result={"training_iteration": 1, "curious": {"surprise": 0.25}})
    (line,) = watched.lines
    assert line.startswith("cart  iteration 1/5  surprise 0.25")


def test_trials_of_a_sweep_are_told_apart():
    watched = Watched(count=2)
    for i in range(2):
        watched.tell("on_trial_start", i)
    watched.tell("on_trial_result", 1, result={"training_iteration": 3})
    (line,) = watched.lines
    assert line.startswith("cart/trial_1_lr=0.2  iteration 3/5")
    values = {"conspec/coeff": 0.000012345, "b": "c d"}
    one = SimpleNamespace(experiment_tag="00003_anything", evaluated_params=values)
    assert trial_name(one) == "trial_3_b=c-d,coeff=1.234e-05"
    alone = SimpleNamespace(experiment_tag="00000", evaluated_params={})
    assert trial_name(alone) == "trial_0"


def test_values_that_pbt_changes_are_said():
    watched = Watched(count=2, space=[("lr",)])
    watched.tell("on_trial_start", 1)
    watched.tell("on_trial_start", 1)
    assert watched.lines == []
    watched.trials[1].config = {"lr": 0.1600001, "seed": 0}
    watched.tell("on_trial_start", 1)
    assert watched.lines == ["cart/trial_1_lr=0.2 goes on from a better one, with lr 0.16"]


def test_criteria_of_the_command_line_replace_those_of_a_resumed_trial():
    watched = Watched(stop={"training_iteration": 9}, overrides={"stop": {}})
    watched.watcher.on_step_begin(iteration=1, trials=watched.trials)
    assert watched.trials[0].stopping_criterion == {"training_iteration": 9}
    kept = Watched(stop={"training_iteration": 9})
    kept.watcher.on_step_begin(iteration=1, trials=kept.trials)
    assert kept.trials[0].stopping_criterion == {"training_iteration": 5}


def test_after_an_interrupt_tune_ends_when_all_that_ran_are_saved(ended):
    watched = Watched(count=3)
    for i in range(3):
        watched.tell("on_trial_start", i)
    for i in range(2):
        watched.tell("on_trial_result", i, result={"training_iteration": 1})
    watched.step_ends()
    watched.interrupt.handle(signal.SIGTERM, None)
    watched.step_ends()
    watched.trials[0].status = "PAUSED"
    watched.step_ends()
    assert not ended
    # The third has no result yet, so it has nothing to save.
    watched.trials[1].status = "PAUSED"
    watched.step_ends()
    watched.step_ends()
    assert ended == [signal.SIGUSR1]
    assert sum("Stopping after this iteration" in line for line in watched.lines) == 1


def test_a_failure_is_one_line_and_the_traceback_is_for_vv(tmp_path):
    text = 'Traceback:\n  raise ValueError("no")\nValueError: no\n'
    (tmp_path / "error.txt").write_text(text)
    for verbose in (0, 2):
        watched = Watched(verbose=verbose)
        watched.trials[0].error_file = tmp_path / "error.txt"
        watched.tell("on_trial_start")
        watched.tell("on_trial_recover")
        assert watched.watcher.ended == set()
        watched.tell("on_trial_error")
        assert watched.watcher.ended == {"0"}
        said = [line for line in watched.lines if line.startswith("rllib: ")]
        assert said == [
            "rllib: trial_0_lr=0.1 failed and starts again from its last checkpoint: "
            "ValueError: no",
            "rllib: trial_0_lr=0.1 failed: ValueError: no",
        ]
        assert ("Traceback:" in watched.lines) is (verbose > 1)


def test_a_finished_trial_has_ended_and_an_interrupted_one_has_not():
    watched = Watched(count=2)
    watched.tell("on_trial_start", 0)
    watched.tell("on_trial_complete", 0)
    assert watched.watcher.ended == {"0"}


def test_every_checkpoint_gets_a_manifest_and_those_in_a_bucket_do_not(tmp_path):
    (tmp_path / "weights.pkl").write_bytes(b"1234")
    watched = Watched()
    watched.tell("on_checkpoint", checkpoint=SimpleNamespace(path=str(tmp_path)))
    watched.tell("on_checkpoint", checkpoint=SimpleNamespace(path="bucket/checkpoint_000000"))
    listed = json.loads((tmp_path / checkpoints.MANIFEST).read_text())
    assert listed == {"weights.pkl": 4}


def test_the_line_that_names_the_exception_is_found():
    text = """Failure # 1 (occurred at 2026-01-01)
ray::PPO.train() (pid=1)
  File "x.py", line 3, in step
    raise RuntimeError("the floor is lava")
RuntimeError: the floor is lava
  and this is its second line
RuntimeError
"""
    assert error_line(text) == "RuntimeError: the floor is lava"
    assert error_line("something odd") == "something odd"
    assert error_line("") == "unknown error"
