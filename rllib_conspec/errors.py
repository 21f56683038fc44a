"""Errors that are answered by one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right. `str(error)` is the one line shown."""


class OptionError(UserError, ValueError):
    """An option is unknown, has the wrong type or an impossible value."""

    def __init__(self, option: str, message: str):
        super().__init__(option, message)
        self.option = option
        self.message = message

    def __str__(self) -> str:
        return f"{self.option}: {self.message}"

    def within(self, section: str) -> OptionError:
        """The same error seen from one level up: `keys` becomes `env_config.keys`."""
        return OptionError(f"{section}.{self.option}" if self.option else section, self.message)


def did_you_mean(word: str, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """' Did you mean "x"?' for the candidate most like `word`, or '' when none is close."""
    names = {str(name).lower(): str(name) for name in candidates}
    close = difflib.get_close_matches(str(word).lower(), list(names), n=1, cutoff=cutoff)
    return f' Did you mean "{names[close[0]]}"?' if close else ""
