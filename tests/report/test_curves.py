import json

import numpy as np
import pytest
from PIL import Image

from rllib_conspec.report.curves import (
    RETURN,
    SMOOTHING,
    Curve,
    main,
    quartiles,
    read_curve,
    read_runs,
)


def write_run(path, rates, steps=100, metric="success_rate"):
    path.mkdir(parents=True)
    lines = [
        {"num_env_steps_sampled_lifetime": steps * (i + 1), "env_runners": {metric: rate}}
        for i, rate in enumerate(rates)
    ]
    (path / "result.json").write_text("\n".join(json.dumps(line) for line in lines))
    return path / "result.json"


def test_running_mean_over_the_last_iterations(tmp_path):
    rates = np.random.default_rng(0).random(50)
    curve = read_curve(write_run(tmp_path / "run", rates))
    assert curve.values[-1] == pytest.approx(rates[-SMOOTHING:].mean())
    assert curve.values[0] == pytest.approx(rates[0] / SMOOTHING)  # one lucky batch is no success
    assert curve.steps[-1] == 5000


def test_steps_to_a_level():
    curve = Curve(np.arange(1.0, 5.0), np.array([0.1, 0.5, 0.95, 0.4]))
    assert curve.steps_to(0.9) == 3
    assert curve.steps_to(0.99) == np.inf


def test_quartiles_keep_the_last_value_of_a_run_that_ended():
    short = Curve(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    long = Curve(np.array([0.0, 100.0]), np.array([0.0, 1.0]))
    steps, low, middle, high = quartiles([short, short, long], points=101)
    assert middle[50] == pytest.approx(1.0) and low[50] == pytest.approx(0.75)
    assert steps[-1] == 100 and high[-1] == 1.0


def test_command_draws_and_prints_steps(tmp_path, capsys):
    for seed in range(3):
        write_run(tmp_path / f"good_{seed}", [1.0] * 60)
        write_run(tmp_path / f"bad_{seed}", [0.0] * 60)
    out = tmp_path / "curves.png"
    assert main([str(out), f"ConSpec={tmp_path}/good_*", f"PPO={tmp_path}/bad_*"]) == 0
    assert Image.open(out).width > 300
    printed = capsys.readouterr().out
    assert "ConSpec: steps to 0.9: 1,800, 1,800, 1,800" in printed
    assert "PPO: steps to 0.9: inf" in printed


def test_command_says_what_is_missing(tmp_path, capsys):
    assert main([str(tmp_path / "x.png"), f"a={tmp_path}/none*"]) == 2
    assert "no result.json" in capsys.readouterr().err
    assert main([]) == 2


def test_runs_that_never_measured_success_are_left_out(tmp_path, capsys):
    write_run(tmp_path / "run_0", [1.0] * 30)
    unmeasured = {"num_env_steps_sampled_lifetime": 100, "env_runners": {"episode_len_mean": 5}}
    (tmp_path / "run_1").mkdir()
    (tmp_path / "run_1" / "result.json").write_text(json.dumps(unmeasured))
    assert len(read_runs(f"{tmp_path}/run_*")) == 1
    assert main([str(tmp_path / "x.png"), f"a={tmp_path}/run_1"]) == 2
    assert "no result.json with success rates" in capsys.readouterr().err


def test_returns_where_success_is_relative(tmp_path, capsys):
    for seed in range(2):
        write_run(tmp_path / f"run_{seed}", [50.0, 150.0, 250.0 + seed], metric=RETURN[-1])
    assert main(["--return", str(tmp_path / "x.png"), f"Hopper={tmp_path}/run_*"]) == 0
    assert Image.open(tmp_path / "x.png").width > 300
    ends = "150.0 after 300 steps, 150.3 after 300 steps"
    assert f"Hopper: return at the end: {ends}" in capsys.readouterr().out
    first = read_curve(tmp_path / "run_0" / "result.json", RETURN)
    assert list(first.values) == [50, 100, 150]  # means of those that there are
    assert main(["--return", str(tmp_path / "x.png"), f"a={tmp_path}/none*"]) == 2
    assert "no result.json with returns" in capsys.readouterr().err
