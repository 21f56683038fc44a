import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials_on_disk import row, write_trial

from rllib_conspec.errors import UserError
from rllib_conspec.report import trials as T

ROWS = [row(i, env_runners__success_rate=i / 10) for i in range(6)]
TEXT = "".join(json.dumps(r) + "\n" for r in ROWS).encode()


@given(st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_a_file_that_grows_gives_every_row_once(tmp_path_factory, ends):
    path = tmp_path_factory.mktemp("grows") / "result.json"
    path.write_bytes(b"")
    file, seen = T.ResultFile(path), []
    for end in [*sorted(ends), len(TEXT)]:
        path.write_bytes(TEXT[:end])
        seen += file.new()
    assert [r["training_iteration"] for r in seen] == [1, 2, 3, 4, 5, 6]
    assert not file.waiting and not file.damaged
    assert list(file.new()) == []


def test_a_file_that_was_begun_anew_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "result.json"
    path.write_bytes(TEXT)
    file = T.ResultFile(path)
    assert len(list(file.new())) == 6
    path.write_bytes(TEXT[: len(TEXT) // 2])
    assert next(file.new())["training_iteration"] == 1


def test_rows_are_what_json_says_without_the_configuration(tmp_path):
    path = tmp_path / "result.json"
    # Where the configuration is not Tune's, but a part of something else, it stays.
    odd = {"a": 1, "mine": {"b": 1, "config": {"c": 2}, "time_since_restore": 3}, "d": float("inf")}
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(odd) + "\n")
    first, second = T.ResultFile(path).new()
    assert first == {k: v for k, v in ROWS[0].items() if k != "config"}
    assert second == odd


def test_a_trial_with_gaps_is_read_and_says_so(tmp_path):
    trial = write_trial(tmp_path / "run" / "trial_0", [0.5, 1.0], done=False)
    with (trial / "result.json").open("ab") as stream:
        stream.write(b"[1]\n\xff\xfe\n" + json.dumps(row(2)).encode() + b'\n{"training_it')
    read = T.read_trial(trial)
    assert read.rows == 3 and read.last(T.SUCCESS) == 1.0 and read.last(T.STEPS) == 3000
    assert np.isnan(read.columns[T.SUCCESS][2])
    assert [gap.rpartition(": ")[2] for gap in read.gaps] == [
        "the last line is cut short and was left out",
        "2 lines are no JSON object and left out",
    ]


def test_a_missing_column_is_named(tmp_path):
    path = write_trial(tmp_path / "run" / "trial_0", [])
    (path / "result.json").write_text('{"env_runners": {"success_rate": 1}}\n')
    assert f"no column {T.STEPS}" in T.read_trial(path).gaps[0]


def test_how_a_trial_stands(tmp_path):
    done = write_trial(tmp_path / "a" / "trial_0", [1.0])
    running = write_trial(tmp_path / "b" / "trial_0", [1.0], done=False)
    old = write_trial(tmp_path / "c" / "trial_0", [1.0], done=False)
    os.utime(old / "result.json", (1e9, 1e9))
    failed = write_trial(tmp_path / "d" / "trial_0", [1.0], done=False)
    (failed / "error.txt").write_text("Traceback …\nValueError: lava\n")
    retried = write_trial(tmp_path / "e" / "trial_0", [1.0], done=False)
    (retried / "error.txt").write_text("ValueError: lava\n")
    os.utime(retried / "error.txt", (1e9, 1e9))
    stands = [T.read_trial(p) for p in (done, running, old, failed, retried)]
    assert [t.status for t in stands] == ["finished", "running", "stopped", "failed", "running"]
    assert [t.error for t in stands] == ["", "", "", "ValueError: lava", ""]


def test_what_it_was_is_read_from_tunes_files(tmp_path):
    name = "mine_2026-01-02_03-04-05"
    path = write_trial(tmp_path / name / "trial_0", [1.0], {"seed": 3}, algorithm="ConSpec")
    read = T.read_trial(path)
    assert (read.algorithm, read.seed, read.experiment) == ("ConSpec", 3, "mine")
    assert T.read_configuration(path) == {"lr": 0.001, "seed": 1}
    (path / "params.json").write_text("{")
    assert T.read_trial(path).params == {} and "params.json" in T.read_trial(path).gaps[0]


def test_what_models_measured(tmp_path):
    path = write_trial(
        tmp_path / "run" / "trial_0", [0.1, 0.2], m__loss=2.0, m__gap={"0": 1, "x": ""}
    )
    with (path / "result.json").open("a") as stream:
        stream.write(json.dumps(row(2)) + "\n")
    steps, found = T.read_metrics(path, "m")
    assert steps.tolist() == [1000, 2000, 3000]
    assert found["loss"][""].tolist()[:2] == [2, 2] and np.isnan(found["loss"][""][2])
    assert list(found["gap"]) == ["0"]


def test_trials_are_found_at_any_height_and_once(tmp_path):
    paths = [write_trial(tmp_path / "r" / f"e{i}" / "trial_0", [1.0]) for i in range(2)]
    assert T.find_trials([tmp_path, tmp_path / "r", paths[1] / "result.json"]) == paths


def test_paths_without_trials_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for given_, words in ((tmp_path, "no trial in it"), (tmp_path / "file", "is a file")):
        with pytest.raises(UserError, match=words):
            T.find_trials([given_])
    with pytest.raises(UserError, match="is not there"):
        T.find_trials([tmp_path / "nothing"])


def test_what_may_not_be_read_is_said(tmp_path, monkeypatch):
    path = write_trial(tmp_path / "run" / "trial_0", [1.0])

    def forbidden(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:  # root may read everything
        patch.setattr(Path, "open", forbidden)
        read = T.read_trial(path)
        assert any("cannot be read: Permission denied" in gap for gap in read.gaps)
    monkeypatch.setattr(Path, "iterdir", forbidden)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        T.find_trials([tmp_path])
