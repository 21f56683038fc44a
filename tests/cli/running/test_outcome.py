from types import SimpleNamespace

from rllib_conspec.cli.running import outcome
from rllib_conspec.cli.running.outcome import summarize


def trial(number, **given):
    plain = {
        "experiment_tag": f"{number}_lr=0.1",
        "evaluated_params": {"lr": 0.1},
        "status": "TERMINATED",
        "last_result": {},
        "metric_analysis": {},
        "error_file": None,
        "checkpoint": None,
        "storage": SimpleNamespace(trial_fs_path=f"somewhere/trial_{number}"),
    }
    return SimpleNamespace(**plain | given)


def said(trials, directory):
    lines = []
    summarize("cart", directory, trials, lines.append)
    return lines


RESULT = {
    "training_iteration": 7,
    "time_total_s": 65.0,
    "env_runners": {"episode_return_mean": 2.5},
}


def test_a_run_says_what_came_out_and_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = tmp_path / "my results" / "cart" / "trial_0" / "checkpoint_000003"
    monkeypatch.setattr(outcome, "what_was_found", lambda path: [f"found       {path.name}"])
    one = trial(
        0,
        last_result=RESULT
        | {
            "num_env_steps_sampled_lifetime": 45123.0,
            "env_runners": {"episode_return_mean": 2.5, "success_rate_20": 0.93},
        },
        metric_analysis={outcome.METRIC: {"max": 3.0}},
        checkpoint=SimpleNamespace(path=str(checkpoint)),
    )
    short = "'my results/cart/trial_0/checkpoint_000003'"
    assert said([one], tmp_path / "my results" / "cart") == [
        "cart: 7 iterations in 65 s, 45,123 steps, success 93% in the last 20, return 2.5 (best 3)",
        f"  checkpoint  {short}",
        f"  evaluate    rllib evaluate {short} --episodes 50",
        "  found       checkpoint_000003",
        "Results: 'my results/cart'  (curves: tensorboard --logdir 'my results/cart')",
    ]


def test_trials_are_told_apart_and_a_failed_one_names_its_log(tmp_path):
    failed = trial(1, status="ERROR", error_file="/elsewhere/error.txt")
    first, log, where = said([trial(0, last_result=RESULT), failed], tmp_path)
    assert first == "cart/trial_0_lr=0.1: 7 iterations in 65 s, return 2.5"
    assert log == "  error log   somewhere/trial_1/error.txt"
    assert where.startswith("Results: ")


def test_numbers_that_are_not_there_are_left_out(tmp_path):
    best = {outcome.METRIC: {"max": float("nan")}}
    line, _ = said(
        [trial(0, last_result={"training_iteration": 1}, metric_analysis=best)], tmp_path
    )
    assert line == "cart: 1 iterations in 0 s"
