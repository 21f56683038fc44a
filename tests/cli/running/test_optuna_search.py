"""Optuna, as the command asks it."""

import math

import optuna
from ray import tune

from rllib_conspec.cli.checks.sweep import Optuna
from rllib_conspec.cli.running.optuna_search import make

METRIC = "env_runners/success_rate_20"
SPACE = {
    "lr": tune.loguniform(1e-4, 1e-2),
    "conspec": {"intrinsic_coeff": tune.uniform(0.0, 1.0), "n": tune.choice([2, 8])},
    "batch": tune.randint(1, 9),
}


def search(seed=0):
    made = make(Optuna(seed=seed, startup_trials=3))
    made.set_search_properties(METRIC, "max", SPACE)
    return made


def score(values):
    """Best at λ = 0.8."""
    return -((values["conspec"]["intrinsic_coeff"] - 0.8) ** 2)


def run(searching, trials):
    found = []
    for name in map(str, trials):
        values = searching.suggest(name)
        result = {METRIC: score(values), "training_iteration": 1}
        searching.on_trial_result(name, result)
        searching.on_trial_complete(name, result)
        found.append(values)
    return found


def test_it_draws_inside_the_ranges_and_comes_nearer():
    found = run(search(), range(30))
    for values in found:
        assert 1e-4 <= values["lr"] <= 1e-2 and values["conspec"]["n"] in (2, 8)
        assert 1 <= values["batch"] < 9
    first, last = (sorted(map(score, part))[5] for part in (found[:10], found[-10:]))
    assert last > first


def test_trials_without_the_metric_say_nothing():
    searching = search()
    for number, result in enumerate([{}, {METRIC: math.nan}, None]):
        searching.suggest(str(number))
        if result is not None:
            searching.on_trial_result(str(number), {"training_iteration": 1, **result})
        searching.on_trial_complete(str(number), result, error=result is None)
    states = [trial.state for trial in searching._ot_study.trials]
    pruned, failed = optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.FAIL
    assert states == [pruned, pruned, failed]


def test_a_restored_search_goes_on_with_what_it_knew(tmp_path):
    searching = search()
    run(searching, range(6))
    open_values = searching.suggest("open")
    searching.save(str(tmp_path / "search.pkl"))
    again = search(seed=5)
    again.restore(str(tmp_path / "search.pkl"))
    assert again.suggest("open") == open_values  # a trial that was killed keeps its values
    again.on_trial_complete("open", {METRIC: 0.5, "training_iteration": 1})
    assert [trial.value for trial in again._ot_study.trials][-1] == 0.5
    assert len(again._ot_study.trials) == 7
