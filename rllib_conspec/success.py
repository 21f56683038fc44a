"""What counts as success: said once for an experiment, the same for every algorithm.

`success` in `config` is `sparse`, `goal`, `top_k`, or the import path `package.module:function` of
a function that is given an `Episode` and returns true or false.
"""

from __future__ import annotations

from collections.abc import Callable

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.importing import import_module

RELATIVE = "top_k"  # the best of a batch: no episode succeeds by itself


def success_function(success: str) -> Callable[[Episode], bool | None]:
    """The function that tells a finished episode's success; None from it: relative to the batch."""
    if ":" in success:
        return _imported(success)
    if success not in _NAMED:
        raise OptionError(
            "success",
            f"must be {', '.join(_NAMED)} or an import path package.module:function, "
            f"not {success!r}." + did_you_mean(success, _NAMED),
        )
    return _NAMED[success]


def _sparse(episode: Episode) -> bool:
    """The episode got the reward."""
    return float(episode.rewards.sum()) > 0


def _goal(episode: Episode) -> bool:
    if "is_success" not in episode.info:
        raise KeyError(
            'success "goal" needs an environment that sets info["is_success"] on the last step of '
            "an episode; use success sparse, top_k or your own function."
        )
    return bool(episode.info["is_success"])


def _relative(episode: Episode) -> None:
    return None


_NAMED = {"sparse": _sparse, "goal": _goal, RELATIVE: _relative}


def _imported(path: str) -> Callable[[Episode], bool]:
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise OptionError("success", f"cannot import {path!r}: {error}.") from None
    if not callable(found):
        raise OptionError("success", f"{path!r} is not a function.")
    return found
