"""When checkpoints are drawn, and what a drawing that fails leaves. What is drawn: test_page.py."""

import json
import sys

import pytest
from serving import awaited

from rllib_conspec.report.live import galleries as module
from rllib_conspec.report.live.galleries import STATE, Galleries


class Trial:
    """Checkpoints on disk, and a drawing process that answers what a test says."""

    def __init__(self, path):
        self.path = path
        self.answer = path / "answer.py"
        self.galleries = Galleries(path)
        self.galleries.command = (sys.executable, "-S", str(self.answer))

    def saves(self, name):
        state = self.path / name / STATE
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_bytes(b"")

    def draws(self, checkpoint, *titles):
        rows = [{"title": title} for title in titles]
        told = {"checkpoint": checkpoint, "notes": [], "galleries": [{"title": "", "rows": rows}]}
        self.answer.write_text(f"print({json.dumps(told)!r})")

    def looks(self):
        return awaited(self.galleries.look())

    @property
    def new(self):
        (gallery,) = self.galleries.shown["galleries"]
        return {row["title"]: row["new"] for row in gallery["rows"]}


@pytest.fixture
def trial(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARE", 1.0)
    return Trial(tmp_path)


def test_each_checkpoint_is_drawn_once_and_what_is_new_in_it_is_marked(trial):
    assert not trial.looks() and not trial.galleries.begins()  # there is none yet
    trial.saves("checkpoint_000000")
    assert trial.galleries.begins() and not trial.galleries.begins()
    assert trial.galleries.shown["lines"] == ["checkpoint_000000 is being drawn …"]
    trial.draws("checkpoint_000000", "thing 3")
    assert trial.looks() and not trial.looks()
    assert trial.new == {"thing 3": False}
    trial.saves("checkpoint_000001")
    trial.draws("checkpoint_000001", "thing 3: door", "thing 5")
    assert trial.looks() and trial.new == {"thing 3: door": False, "thing 5": True}


def test_one_that_is_still_being_written_is_tried_again(trial):
    trial.saves("checkpoint_000001")
    trial.draws("checkpoint_000000", "old")
    assert not trial.looks() and trial.galleries.shown is None
    trial.draws("checkpoint_000001", "whole")
    assert trial.looks() and trial.new == {"whole": False}


def test_a_drawing_that_breaks_is_a_line_and_given_up(trial):
    trial.saves("checkpoint_000001")
    trial.answer.write_text("raise ValueError('no such thing')")
    assert [trial.looks() for _ in range(4)] == [False, False, True, False]
    assert trial.galleries.shown["notes"] == [
        "what was found cannot be drawn: ValueError: no such thing"
    ]


def test_a_drawing_that_never_ends_is_ended(trial, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    monkeypatch.setattr(module, "TRIES", 1)
    trial.saves("checkpoint_000001")
    trial.answer.write_text("import time; time.sleep(600)")
    assert trial.looks()
    (line,) = trial.galleries.shown["notes"]
    assert line.startswith("drawing what was found takes more than")


def test_drawing_takes_a_share_of_the_time(trial, monkeypatch):
    monkeypatch.setattr(module, "SHARE", 0.001)
    trial.draws("checkpoint_000000", "thing")
    trial.saves("checkpoint_000000")
    assert trial.looks()
    trial.saves("checkpoint_000001")
    assert not trial.looks()
