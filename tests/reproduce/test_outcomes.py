import json

import numpy as np
import pytest

from rllib_conspec.errors import UserError
from rllib_conspec.report.curves import SUCCESS, Curve
from rllib_conspec.reproduce import outcomes
from rllib_conspec.reproduce.expectations import Outcome
from rllib_conspec.reproduce.figure import Run
from rllib_conspec.reproduce.table import FIGURES

FIGURE, RUN = FIGURES["multikeys"], Run("keys1", "keys1")


def trial(directory, seed, rows, done):
    """A trial as Tune leaves it."""
    directory.mkdir(parents=True)
    (directory / "params.json").write_text(json.dumps({"seed": seed}))
    with (directory / "result.json").open("w") as stream:
        for i in range(1, rows + 1):
            row = {"num_env_steps_sampled_lifetime": 10 * i, "env_runners": {"success_rate": 1.0}}
            stream.write(json.dumps({**row, "done": done and i == rows}) + "\n")


def test_of_several_trials_of_a_seed_the_one_that_ended_counts(tmp_path):
    trial(tmp_path / "keys1/trial_0", 0, 9, done=False)
    trial(tmp_path / "keys1/trial_1", 1, 5, done=False)
    trial(tmp_path / "keys1_2026-01-01_00-00-00/trial_0", 0, 3, done=True)
    trial(tmp_path / "keys1_2026-01-01_00-00-00/trial_1", 1, 7, done=False)
    trial(tmp_path / "keys1_ppo/trial_0", 2, 3, done=True)  # another run
    found = outcomes.from_trials(tmp_path, RUN, FIGURE)
    assert {seed: (o.ended, o.played) for seed, o in found.items()} == {
        0: (True, 30.0),
        1: (False, 70.0),
    }
    assert found[1].final == pytest.approx(7 / 20)  # of 20 iterations
    assert outcomes.from_trials(tmp_path / "nothing", RUN, FIGURE) == {}


def test_a_trial_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path):
    trial(tmp_path / "keys1/trial_0", 0, 3, done=False)
    with (tmp_path / "keys1/trial_0/result.json").open("a") as stream:
        stream.write('{"num_env_st')
    trial(tmp_path / "keys1/trial_1", 1, 0, done=False)
    found = outcomes.from_trials(tmp_path, RUN, FIGURE)
    assert list(found) == [0] and found[0].played == 30.0 and not found[0].ended


def test_kept_curves_are_read_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr(outcomes, "KEPT", tmp_path)
    curve = Curve(np.array([1040.0, 2080.0]), np.array([0.0, 0.9125]))
    kept = tmp_path / "reproduce/small"
    outcomes.write_csv(Outcome(4, curve, True), kept / "keys1_4.csv", SUCCESS)
    (kept / "keys1_ppo_0.csv").write_text("of another run")
    (found,) = outcomes.from_kept(RUN, "small", FIGURE).values()
    assert found.seed == 4 and found.ended
    assert found.curve.steps.tolist() == curve.steps.tolist()
    assert found.curve.values.tolist() == curve.values.tolist()
    assert outcomes.from_kept(RUN, "paper", FIGURE) == {}


@pytest.mark.parametrize("text", ["", "steps,loss\n1,2\n", "steps,success_rate_20\n1,many\n"])
def test_a_kept_file_that_is_no_curve_is_named(tmp_path, text):
    file = tmp_path / "keys1_0.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=r"keys1_0\.csv: "):
        outcomes.read_csv(file, SUCCESS)


def test_what_the_table_says_is_kept_can_be_read():
    found = 0
    for figure in FIGURES.values():
        for scale in figure.scales:
            for run in {line.run.name: line.run for line in figure.lines(scale)}.values():
                kept = outcomes.from_kept(run, scale, figure)
                assert all(outcome.played > 0 for outcome in kept.values())
                assert kept or not run.known or "control" in run.known  # two of its six are kept
                found += len(kept)
    assert found >= 12
