"""What the drawing process answers; tests/cli/test_train.py runs it beside a real run."""

import json
import pickle

import numpy as np
from told import episode, row, write_checkpoint

from rllib_conspec.report.live.drawing import draw, main


def test_rows_with_their_frames_and_lines_that_no_row_says(tmp_path):
    frames = np.full((10, 6, 6, 3), 200, np.uint8)
    things = (row([episode(frames)] * 8, range(8), "thing 0"),)
    told = {"lines": ("thing 0: seen", "in all one"), "galleries": {"things": things}}
    write_checkpoint(tmp_path / "checkpoint_000001", {"told:Told": told})
    drawn = draw(tmp_path)
    assert drawn["checkpoint"] == "checkpoint_000001" and drawn["lines"] == ["in all one"]
    (gallery,) = drawn["galleries"]
    assert gallery["title"] == "told: things"
    (shown,) = gallery["rows"]
    assert shown["title"] == "thing 0" and len(shown["frames"]) == 6
    assert shown["frames"][0]["image"].startswith("data:image/png;base64,")
    assert shown["frames"][0]["caption"].startswith("step 0, ")


def test_what_is_printed_does_not_come_between(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("os.nice", lambda _: None)  # it would last
    write_checkpoint(tmp_path / "checkpoint_000001", {"told:Broken": {}})
    assert main([str(tmp_path)]) == 0
    drawn = json.loads(capfd.readouterr().out)
    (line,) = drawn["notes"]
    assert drawn["checkpoint"] == "" and "broken cannot be described" in line


def test_a_run_without_reward_models_says_nothing(tmp_path):
    write_checkpoint(tmp_path / "checkpoint_000001", {})
    state = tmp_path / "checkpoint_000001/learner_group/learner/state.pkl"
    state.write_bytes(pickle.dumps({}))
    drawn = draw(tmp_path)
    assert drawn["checkpoint"] and not drawn["lines"] + drawn["galleries"] + drawn["notes"]
