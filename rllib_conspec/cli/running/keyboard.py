"""Playing in a terminal: pictures as coloured characters, keys as actions. Needs no display.

A terminal tells that a key was pressed, not for how long. So an action lasts for a few steps after
its key, and as long as the key repeats.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Sequence
from typing import Any

import numpy as np

from rllib_conspec.errors import UserError

STEPS_PER_SECOND = 15.0  # of an Atari game, of which a step is four frames
HELD = 5  # steps that an action lasts after its key
ARROWS = {"\x1b[A": "UP", "\x1b[B": "DOWN", "\x1b[C": "RIGHT", "\x1b[D": "LEFT"}
KEYS = {
    **ARROWS,
    " ": "FIRE",
    "w": "UPFIRE",
    "s": "DOWNFIRE",
    "a": "LEFTFIRE",
    "d": "RIGHTFIRE",
}
QUIT = ("q", "\x03")
NO_TERMINAL = "record: --keyboard needs a terminal."


class Keyboard:
    """Reads keys and draws pictures, in the terminal of this process."""

    def __init__(self, names: Sequence[str], source: int | None = None, screen: Any = None) -> None:
        """`source` and `screen` are standard input and output, unless others are given."""
        self._source = _standard_input() if source is None else source
        self._screen = screen or sys.stdout
        if not os.isatty(self._source):
            raise UserError(NO_TERMINAL)
        numbers = {name: i for i, name in enumerate(names)}
        self._actions = {key: numbers[name] for key, name in KEYS.items() if name in numbers}
        self._actions |= {str(i): i for i in range(min(10, len(names)))}
        self._action, self._left = 0, 0
        self._next = 0.0
        self._before = termios.tcgetattr(self._source)
        tty.setcbreak(self._source, termios.TCSANOW)
        atexit.register(self.close)  # whatever happens, the terminal is as it was
        said = ", ".join(f"{name.lower()}: {_said(k)}" for k, name in KEYS.items() if name in names)
        self._help = f"{said or 'actions: their numbers'}, q: stop"

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._before is not None:
            termios.tcsetattr(self._source, termios.TCSANOW, self._before)
            self._before = None
            atexit.unregister(self.close)

    def show(self, observation: Any) -> None:
        """Draw the first picture of an episode."""
        self._action, self._left, self._next = 0, 0, time.monotonic()
        self._draw(observation)

    def choose(self, observation: Any) -> int:
        """The action for this step: what is pressed, after waiting for the step's time."""
        self._draw(observation)
        self._next = max(self._next + 1 / STEPS_PER_SECOND, time.monotonic())
        for key in self._pressed(self._next):
            if key in QUIT:
                raise KeyboardInterrupt
            if key in self._actions:
                self._action, self._left = self._actions[key], HELD
        self._left -= 1
        return self._action if self._left >= 0 else 0

    def _pressed(self, until: float) -> list[str]:
        """Keys that are pressed until then."""
        keys: list[str] = []
        while True:  # once at least, however late it is
            wait = max(0.0, until - time.monotonic())
            if select.select([self._source], [], [], wait)[0]:
                keys += _keys(os.read(self._source, 64).decode(errors="ignore"))
            if wait == 0.0:
                return keys

    def _draw(self, observation: Any) -> None:
        picture = np.asarray(observation)
        text = drawn(picture) if picture.ndim == 3 and picture.shape[2] == 3 else str(picture)
        self._screen.write(f"\x1b[H\x1b[J{text}\n{self._help}\n")
        self._screen.flush()


def drawn(picture: np.ndarray) -> str:
    """A picture [H, W, 3] of bytes as characters, two rows of pixels to a line."""
    upper, lower = picture[0::2], picture[1::2]
    lines = []
    for above, below in zip(upper, lower, strict=False):
        cells = (
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀"
            for a, b in zip(above, below, strict=True)
        )
        lines.append("".join(cells) + "\x1b[0m")
    return "\n".join(lines)


def _standard_input() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError) as error:  # there is none
        raise UserError(NO_TERMINAL) from error


def _keys(text: str) -> list[str]:
    """Single keys of what was read; an arrow is three characters."""
    keys = []
    while text:
        length = 3 if text[:3] in ARROWS else 1
        keys.append(text[:length])
        text = text[length:]
    return keys


def _said(key: str) -> str:
    return {" ": "space"}.get(key, "arrow" if key in ARROWS else key)
