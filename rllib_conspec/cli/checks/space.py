"""Values that differ between the trials of a sweep: `lr: {loguniform: [1e-4, 1e-2]}`.

In a file each is a mapping of one of these words to its values; in Python it may be a sampler of
Tune's. Whatever can be drawn is checked before anything starts: every choice, both ends of a range.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rllib_conspec.annotations import fits, show
from rllib_conspec.errors import OptionError

GRID, CHOICE = "grid_search", "choice"


@dataclass(frozen=True)
class Range:
    """A word for a range: what its numbers are."""

    whole: bool = False  # the upper end is then left out, as in Python's ranges
    log: bool = False
    step: bool = False


RANGES = {
    "uniform": Range(),
    "quniform": Range(step=True),
    "loguniform": Range(log=True),
    "randint": Range(whole=True),
    "lograndint": Range(whole=True, log=True),
}
WORDS = (GRID, CHOICE, *RANGES)


def is_sampler(value: Any) -> bool:
    """Whether `value` stands for several, in the form that files have."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in WORDS


def is_grid(value: Any) -> bool:
    """Whether there is a trial for each of its values."""
    return is_sampler(value) and GRID in value


def is_drawn(value: Any) -> bool:
    """Whether trials get one of its values by chance, or by a search."""
    return (is_sampler(value) and not is_grid(value)) or _is_domain(value)


def possible(option: str, value: Any) -> list[Any]:
    """What `option` may be: every choice, both ends of a range, or just `value` itself."""
    if _is_domain(value):
        value = _as_written(option, value)
    if not is_sampler(value):
        return [value]
    ((word, values),) = value.items()
    if word in RANGES:
        return _ends(option, word, values)
    if not isinstance(values, list) or not values:
        raise OptionError(option, f"{word} needs a list of values, got {show(values)}.")
    if word == CHOICE and any(varied(one) for one in values):
        raise OptionError(option, "choice has another choice in it; write all values in one list.")
    return values


def _ends(option: str, word: str, values: Any) -> list[Any]:
    kind = RANGES[word]
    number = int if kind.whole else float
    names = ["lowest", "highest", "step"][: 2 + kind.step]
    right = isinstance(values, (list, tuple)) and len(values) == len(names)
    if not right or not all(fits(number, v) and math.isfinite(v) for v in values):
        what = "whole numbers" if kind.whole else "numbers"
        raise OptionError(option, f"{word} needs {what} [{', '.join(names)}], got {show(values)}.")
    low, high = values[:2]
    if low >= high:
        raise OptionError(option, f"{word} goes from {show(low)} to {show(high)}: nothing between.")
    if kind.log and low <= 0:
        raise OptionError(option, f"{word} needs numbers above 0, got {show(low)}.")
    if kind.step and values[2] <= 0:
        raise OptionError(option, f"{word} needs a step above 0, got {show(values[2])}.")
    return [low, high - 1 if kind.whole else high]


def combinations(config: Any, option: str = "") -> Iterator[Any]:
    """Every combination of all possible values in `config`, at any depth."""
    if _varies_itself(config):
        for value in possible(option, config):
            yield from combinations(value, option)
    elif isinstance(config, Mapping):
        inner = (combinations(value, _inside(option, key)) for key, value in config.items())
        for values in itertools.product(*inner):
            yield dict(zip(config, values, strict=True))
    else:
        yield config


def covering(config: Any, option: str = "") -> list[Any]:
    """A few combinations in which every possible value occurs."""
    if _varies_itself(config):
        return [c for value in possible(option, config) for c in covering(value, option)]
    if not isinstance(config, Mapping) or not config:
        return [config]
    lists = {key: covering(value, _inside(option, key)) for key, value in config.items()}
    most = max(map(len, lists.values()))
    return [{key: found[i % len(found)] for key, found in lists.items()} for i in range(most)]


def cases(config: Mapping[str, Any], most: int) -> list[Any]:
    """What to check: all values, and as many combinations of them as `most` allows."""
    found = covering(config)
    for one in itertools.islice(combinations(config), most):
        if one not in found:
            found.append(one)
    return found


def grid_size(config: Any) -> int:
    """How many trials the `grid_search` values in `config` ask for."""
    if is_grid(config):
        return sum(grid_size(value) for value in config[GRID])
    if isinstance(config, Mapping):
        return math.prod(grid_size(value) for value in config.values())
    return 1


def may_be(config: Any, value: Any) -> bool:
    """Whether a trial of `config` can have had `value`."""
    if _varies_itself(config):
        ends = possible("", config)
        ranged = _is_domain(config) or next(iter(config)) in RANGES
        if not ranged or any(not fits(float, end) for end in ends):
            return any(may_be(one, value) for one in ends)
        return fits(float, value) and min(ends) <= value <= max(ends)
    if isinstance(config, Mapping) and isinstance(value, Mapping):
        return config.keys() == value.keys() and all(may_be(config[k], value[k]) for k in config)
    return config == value


def varied(config: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Path → sampler or grid, of all values in `config` that differ between trials."""
    if _varies_itself(config):
        return {path: config}
    if not isinstance(config, Mapping):
        return {}
    inside = [varied(value, (*path, str(key))) for key, value in config.items()]
    return {where: value for one in inside for where, value in one.items()}


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Values by their paths as mappings in mappings."""
    made: dict[str, Any] = {}
    for (*sections, key), value in values.items():
        place = made
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return made


def at(config: Any, path: tuple[str, ...]) -> Any:
    """The value at a path; None where there is none."""
    for key in path:
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def for_tune(config: Any) -> Any:
    """`config` with Tune's samplers in place of our words."""
    from ray import tune

    if is_grid(config):
        return {GRID: [for_tune(value) for value in config[GRID]]}
    if is_sampler(config):
        ((word, values),) = config.items()
        return tune.choice(values) if word == CHOICE else getattr(tune, word)(*values)
    if isinstance(config, Mapping) and varied(config):
        return {key: for_tune(value) for key, value in config.items()}
    return config


def _varies_itself(value: Any) -> bool:
    return is_sampler(value) or _is_domain(value)


def _is_domain(value: Any) -> bool:
    """Whether `value` is one of Tune's samplers. Without importing Tune for every number."""
    return hasattr(value, "get_sampler") and hasattr(value, "domain_str")


def _as_written(option: str, domain: Any) -> dict[str, list[Any]]:
    """One of Tune's samplers as a file would have it."""
    from ray.tune.search import sample

    if isinstance(domain, sample.Categorical):
        return {CHOICE: list(domain.categories)}
    if not isinstance(domain, (sample.Float, sample.Integer)):
        raise OptionError(option, "a function cannot be checked before it is called; use choice.")
    if not (math.isfinite(domain.lower) and math.isfinite(domain.upper)):
        raise OptionError(option, "a sampler without bounds cannot be checked; use uniform.")
    sampler, whole = domain.get_sampler(), isinstance(domain, sample.Integer)
    rounded = isinstance(sampler, sample.Quantized)
    inner = sampler.sampler if rounded else sampler
    if isinstance(inner, sample.LogUniform):
        word = "lograndint" if whole else "loguniform"
    else:
        word = "randint" if whole else "uniform"
    # Rounded whole numbers may be the upper end itself.
    return {word: [domain.lower, domain.upper + (whole and rounded)]}


def _inside(option: str, key: Any) -> str:
    return f"{option}.{key}" if option else str(key)
