"""`rllib report`: one line for what is wrong, and one for what was written."""

import json

ROW = {"num_env_steps_sampled_lifetime": 10, "env_runners": {"success_rate": 0.5}, "done": True}


def trial(directory, text):
    directory.mkdir(parents=True)
    (directory / "params.json").write_text("{}")
    (directory / "result.json").write_text(text)


def test_what_is_wrong_is_said_in_one_line(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    trial(tmp_path / "results" / "trial_0", json.dumps(ROW))
    assert refused("report", tmp_path / "empty").endswith(
        "no trial in it (no result.json here or below)."
    )
    assert refused("report", tmp_path / "nowhere").endswith("nowhere: is not there.")
    assert "cannot be written" in refused("report", "results", "-o", tmp_path / "file" / "out")


def test_gaps_are_named_and_the_page_is_written(rllib, tmp_path):
    trial(tmp_path / "results" / "trial_0", json.dumps(ROW) + '\n{"num_env')
    result = rllib("report", "results", "-o", "out")
    assert result.exit_code == 0, result.output
    half, last = result.output.strip().splitlines()
    assert "the last line is cut short and was left out" in half
    assert last == "out/index.html: 1 trial in 1 group."
    assert "Learning curves" in (tmp_path / "out" / "index.html").read_text()
