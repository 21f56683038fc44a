"""From rows of `result.json` to curves, and what is said beside them."""

import json
from itertools import pairwise

from rllib_conspec.report.live import history as history_module
from rllib_conspec.report.live.charts import SPEED, X, layout
from rllib_conspec.report.live.history import History

STEPS, ITERATION, SECONDS = X
MOST = 100


def row(i, **values):
    """Iteration i of a run with 100 steps and 2 s in each."""
    config = {"num_env_runners": 2, "reward_models": {"curious": {}, "my.module:Other": {}}}
    return {
        ITERATION: i,
        STEPS: 100.0 * i,
        SECONDS: 2.0 * i,
        "time_this_iter_s": 2.0,
        "iterations_since_restore": i,
        "env_runners": {"num_env_steps_sampled": 100, "success_rate": 0.5},
        "config": config,
    } | values


def filled(*rows):
    history = History()
    history.add(rows)
    return history


def titles(history):
    return {c["title"]: [name for _, name in c["curves"]] for c in history.layout}


def test_columns_stay_beside_each_other_where_a_metric_is_missing():
    late = row(2, env_runners={"episode_return_mean": 3.5})
    history = filled(row(1), late, row(3))
    assert history.columns["env_runners/success_rate"] == [0.5, None, 0.5]
    assert history.columns["env_runners/episode_return_mean"] == [None, 3.5, None]
    assert history.columns[SPEED] == [50, 50, 50]
    assert history.since(2).keys() == {*X, SPEED, "env_runners/success_rate"}


def test_what_is_no_finite_number_is_a_gap_that_json_can_say():
    rows = [row(1, seconds={"a": float("nan"), "b": float("inf"), "c": True, "d": "7", "e": 7.0})]
    history = filled(*json.loads(json.dumps(rows)), {"hints": 3, "incidents": {}, "config": 1})
    assert [n for n in history.columns if n.startswith("seconds")] == ["seconds/e"]
    json.dumps([history.columns, history.facts()], allow_nan=False)


def test_metrics_of_any_reward_model_are_drawn_by_their_names_alone():
    curious = {"seen": 700.0, "frozen": 1.0, "loss": 0.5, "loss_a": 1, "gap": {"10": 1.5, "9": 1}}
    history = filled(row(1, curious=curious, other={"x": 0.25}, unnamed={"y": 1}))
    found = {title: curves for title, curves in titles(history).items() if ":" in title}
    assert found == {
        "curious: frozen, loss_a": ["frozen", "loss_a"],
        "curious: seen": ["seen"],
        "curious: loss": ["loss"],
        "curious: gap": ["9", "10"],
        "other: x": ["x"],
    }
    history.add([row(2, curious=curious | {"loss_a": 0.75})])  # so it never was a count
    assert titles(history)["curious: loss"] == ["loss", "loss_a"]


def test_the_order_on_the_page_does_not_depend_on_that_of_metrics():
    names = ["seconds/b", SPEED, "env_runners/success_rate", "seconds/a"]
    first = layout(dict.fromkeys(names), [])
    assert first == layout(dict.fromkeys(reversed(names)), [])
    assert [c["title"] for c in first] == ["Success", "Speed", "Seconds per phase"]


def test_a_resumed_run_is_marked_once():
    again = [row(i, iterations_since_restore=i - 20) for i in (21, 22)]
    history = filled(row(19), row(20), *again)
    assert history.begun == [20]
    assert [line["text"] for line in history.log] == ["resumed after iteration 20"]


def test_incidents_are_logged_with_their_iteration_and_hints_once():
    rows = [row(1, hints=["more"]), row(2, hints=["more"], incidents=["worker 1 died"])]
    history = filled(*rows, row(3, done=True), row(4, done=True))
    told = [(line["at"], line["kind"], line["text"]) for line in history.log]
    assert told == [(1, "hint", "more"), (2, "incident", "worker 1 died"), (3, "end", "finished")]


def test_workers_health():
    healthy = {"num_healthy_workers": 1, "num_remote_worker_restarts": 3}
    facts = filled(row(7, fault_tolerance=healthy)).facts()
    assert facts["workers"] == "1 of 2" and facts["worker restarts"] == "3"
    assert facts["steps"] == "700" and facts["iteration"] == "7"


def test_of_too_many_rows_every_second_stays_with_the_newest(monkeypatch):
    monkeypatch.setattr(history_module, "MOST", MOST)
    history = filled(*(row(i) for i in range(1, MOST + 1)))
    assert not history.thin()
    history.add([row(MOST + 1)])
    assert history.thin() and history.every == 2
    kept = history.columns[ITERATION]
    assert kept[-1] == MOST + 1 and {b - a for a, b in pairwise(kept)} == {2}
    assert {len(column) for column in history.columns.values()} == {len(kept)}
