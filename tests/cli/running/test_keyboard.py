import io
import os
import pty
import time

import numpy as np
import pytest

from rllib_conspec.cli.running import keyboard
from rllib_conspec.cli.running.keyboard import HELD, Keyboard, drawn
from rllib_conspec.errors import UserError

NAMES = ["NOOP", "FIRE", "UP", "RIGHT", "LEFT", "RIGHTFIRE"]
PICTURE = np.zeros((4, 4, 3), np.uint8)


@pytest.fixture
def terminal(monkeypatch):
    """A keyboard on a terminal of its own, and what types on it."""
    monkeypatch.setattr(keyboard, "STEPS_PER_SECOND", 50.0)
    person, computer = pty.openpty()
    screen = io.StringIO()
    board = Keyboard(NAMES, computer, screen)
    board.show(PICTURE)
    yield board, lambda text: (os.write(person, text.encode()), time.sleep(0.05)), screen
    board.close()
    os.close(person)
    os.close(computer)


@pytest.mark.parametrize(
    ("typed", "action"), [(" ", "FIRE"), ("\x1b[C", "RIGHT"), ("d", "RIGHTFIRE"), ("4", "LEFT")]
)
def test_keys_are_actions_that_last_a_while(terminal, typed, action):
    board, type_, _ = terminal
    assert board.choose(PICTURE) == 0
    type_(typed)
    chosen = [board.choose(PICTURE) for _ in range(HELD + 2)]
    assert chosen == [NAMES.index(action)] * HELD + [0, 0]


def test_the_last_key_counts_and_unknown_ones_do_not(terminal):
    board, type_, _ = terminal
    type_("\x1b[A\x1b[Dzx")
    assert board.choose(PICTURE) == NAMES.index("LEFT")


def test_who_has_had_enough_stops(terminal):
    board, type_, _ = terminal
    type_("q")
    with pytest.raises(KeyboardInterrupt):
        board.choose(PICTURE)


def test_steps_take_their_time(terminal):
    board, _, _ = terminal
    start = time.monotonic()
    for _ in range(10):
        board.choose(PICTURE)
    assert time.monotonic() - start >= 0.15


def test_pictures_are_drawn_two_rows_to_a_line(terminal):
    picture = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    lines = drawn(picture).split("\n")
    assert len(lines) == 2 and all(line.count("▀") == 2 for line in lines)
    assert lines[0].startswith("\x1b[38;2;0;1;2;48;2;6;7;8m▀")
    assert "fire: space" in terminal[2].getvalue()


def test_without_a_terminal_there_is_one_line():
    reading, writing = os.pipe()
    with pytest.raises(UserError, match="--keyboard needs a terminal"):
        Keyboard(NAMES, reading, io.StringIO())
    os.close(reading)
    os.close(writing)
