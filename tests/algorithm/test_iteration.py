"""Metrics of a whole iteration, however many training steps it has."""

import pytest
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from rllib_conspec.algorithm.iteration import Iteration, log_nested
from rllib_conspec.algorithm.report import Report
from rllib_conspec.episodes import Summary


def report(*success, paid=(), **values):
    summaries = [Summary(float(bool(s)), 10, s) for s in success]
    return Report(summaries=summaries, intrinsic_returns=list(paid), **values)


class Run:
    """Iterations as an algorithm has them."""

    def __init__(self):
        self.iteration, self.logger, self.number = Iteration(), MetricsLogger(root=True), 0

    def step(self, *steps):
        """One iteration of some training steps, each with its workers' reports; its result."""
        for reports in steps:
            self.iteration.at(self.number)
            self.iteration.add(reports)
            self.iteration.log(self.logger)
        self.number += 1
        return self.logger.reduce(compile=True)


def test_values_are_of_all_training_steps_of_the_iteration_and_of_no_other():
    run = Run()
    first = run.step(
        [report(True, paid=[1.0]), report(True, paid=[2.0])], [report()], [report(False, paid=[6])]
    )
    second = run.step([report(False, False, paid=[0.5, 0.5])])
    assert first["env_runners"]["success_rate"] == pytest.approx(2 / 3)
    assert first["env_runners"]["intrinsic_return_mean"] == 3.0
    assert second["env_runners"]["success_rate"] == 0.0
    assert second["env_runners"]["intrinsic_return_mean"] == 0.5


def test_the_rate_of_20_counts_iterations_and_missing_ones_as_failures():
    """Or one lucky batch would end a run."""
    run = Run()
    rates = [0.0, 1.0, 0.5, 1.0] * 7
    shown = [
        run.step([report(r > 0)], [report(r > 0.5)])["env_runners"]["success_rate_20"]
        for r in rates
    ]
    for i, rate in enumerate(shown):
        assert rate == pytest.approx(sum(rates[max(0, i - 19) : i + 1]) / 20)


def test_an_iteration_in_which_no_episode_ended_changes_no_rate():
    run = Run()
    run.step([report(True)])
    run.step([report()])
    assert run.step([report(True)])["env_runners"]["success_rate_20"] == pytest.approx(2 / 20)


def test_there_is_no_success_rate_where_success_is_relative():
    shown = Run().step([report(None, None, paid=[1.0, 3.0])])["env_runners"]
    assert "success_rate" not in shown
    assert "success_rate_20" not in shown
    assert shown["intrinsic_return_mean"] == 2.0


def test_seconds_are_those_of_the_slowest_worker_summed_over_steps():
    run = Run()
    slow, quick = ({"sample_seconds": s, "score_seconds": 1 - s} for s in (0.75, 0.25))
    seconds = run.step([report(**slow), report(**quick)], [report(**quick)])["seconds"]
    assert seconds == {"sample": 1.0, "score": 1.5}
    assert run.step([report(**quick)])["seconds"] == {"sample": 0.25, "score": 0.75}


def test_phases_are_timed_together():
    iteration, logger = Iteration(), MetricsLogger(root=True)
    iteration.at(0)
    for _ in range(3):
        with iteration.timed("rl_update"):
            pass
    iteration.log(logger)
    assert 0 < logger.reduce(compile=True)["seconds"]["rl_update"] < 1


def test_dropped_episodes_are_counted_for_ever():
    run = Run()
    counts = [
        run.step([report(dropped=2), report(dropped=1)], [report(dropped=1)]),
        run.step([report()]),
        run.step([report(dropped=3)]),
    ]
    name = "num_episodes_dropped_lifetime"
    assert [c["env_runners"][name] for c in counts] == [4, 4, 7]


def test_a_restored_iteration_remembers_the_rates():
    run, other = Run(), Run()
    for success in (True, True, False):
        run.step([report(success)])
        other.step([report(False)])
    other.iteration.set_state(run.iteration.get_state())
    shown = [r.step([report(True)])["env_runners"]["success_rate_20"] for r in (run, other)]
    assert shown == [pytest.approx(3 / 20)] * 2


def test_nested_metrics_keep_their_place():
    logger = MetricsLogger(root=True)
    for value in (1.0, 2.0):
        log_nested(logger, (), {"model": {"loss": value, "inner": {"0": 2 * value}}})
    assert logger.reduce(compile=True) == {"model": {"loss": 2.0, "inner": {"0": 4.0}}}


def test_a_phase_that_an_iteration_did_without_took_no_time():
    """Asynchronous algorithms end an update of the reward models now and then; RLlib's logger would
    answer with "not a number" in between.
    """
    run = Run()
    run.iteration.at(0)
    run.iteration.spend("reward_model", 2.5)
    assert run.step([report(True)])["seconds"]["reward_model"] == 2.5
    assert run.step([report(True)])["seconds"]["reward_model"] == 0.0
