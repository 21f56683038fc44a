"""The runs that figures are made of, at both scales.

small: a newcomer's settings (`few_successes`), one core a run, and on every task the same steps for
everybody. paper: `tuned_examples/paper/`, or other files with `preset: paper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rllib_conspec.reproduce.figure import PAPER, SMALL, Line, Run

STEPS = "num_env_steps_sampled_lifetime"
SOLVED = {"env_runners/success_rate_20": 0.93}  # then a run may end
# By keys: steps, well above what the slowest seed of ConSpec has needed so far (docs/keys.md) …
BUDGETS = {1: 150_000, 2: 450_000, 3: 1_000_000, 4: 5_000_000}
# … and minutes of one core for them, by what the examples say of their time.
MINUTES = {1: 2.0, 2: 4.5, 3: 4.5, 4: 22.0}
SOLVED_MINUTES = {1: 1.5, 2: 2.0, 3: 2.5, 4: 5.0}  # of ConSpec, which ends long before
KEYS = (1, 2, 3, 4)
# What the paper compares with on the key tasks: label → example
RIVALS = {"SynthRs": "synthrs", "RND": "rnd", "RUDDER": "rudder", "TVT": "tvt"}

Lines = dict[str, tuple[Line, ...]]


def both_scales(lines: Callable[[str], Iterable[Line]]) -> Lines:
    return {scale: tuple(lines(scale)) for scale in (SMALL, PAPER)}


def panel(keys: int) -> str:
    return f"{keys} key" + ("" if keys == 1 else "s")


def key(keys: int, label: str) -> str:
    """A line's key, for expectations."""
    return f"{panel(keys)}: {label}"


def until(keys: int) -> dict[str, float]:
    return {STEPS: BUDGETS[keys], **SOLVED}


def conspec(keys: int, scale: str) -> Run:
    if scale == PAPER:
        return Run(f"keys{keys}", f"paper/keys{keys}")
    return Run(f"keys{keys}", f"keys{keys}", stop=until(keys), minutes=SOLVED_MINUTES[keys])


def ppo(keys: int, scale: str) -> Run:
    name = f"keys{keys}_ppo"
    if scale == PAPER:
        return Run(name, f"paper/{name}")
    return Run(name, name, stop=until(keys), minutes=MINUTES[keys])


def other(name: str, keys: int, scale: str, example: str = "", **options: Any) -> Run:
    """ConSpec with other options; `example`: the paper's sizes have a file for it."""
    changed = {"conspec": options}
    if scale == PAPER:
        return Run(name, example) if example else Run(name, f"paper/keys{keys}", changed)
    return Run(name, f"keys{keys}", changed, stop=until(keys), minutes=2 * SOLVED_MINUTES[keys])


def rival(example: str, keys: int, scale: str, **env_config: Any) -> Run:
    """A file of rivals/ has the small settings and one key."""
    config: dict[str, Any] = {"env_config": {"keys": keys, **env_config}}
    name = "_".join([example, f"keys{keys}", *env_config])
    if scale == PAPER:
        return Run(name, f"rivals/{example}", {"preset": "paper", **config})
    return Run(name, f"rivals/{example}", config, stop=until(keys), minutes=MINUTES[keys])
