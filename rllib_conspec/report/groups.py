"""Trials that differ only in their seed belong together: one curve, one line of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_conspec.report.trials import Trial, find_trials

_LABELLED = re.compile(r"([^=/]+)=(.+)")


@dataclass(frozen=True, eq=False)
class Group:
    """Trials of one configuration."""

    label: str
    trials: tuple[Trial, ...]

    @property
    def algorithm(self) -> str:
        return self.trials[0].algorithm

    @property
    def slug(self) -> str:
        """The label as part of a file's name."""
        return re.sub(r"[^\w.-]+", "_", self.label).strip("_")[:80] or "group"


def find_labelled(results: Sequence[str]) -> dict[Path, str]:
    """Trial directory → its label, "" where the results are given without `LABEL=` before them."""
    found: dict[Path, str] = {}
    for given in results:
        match = None if Path(given).exists() else _LABELLED.fullmatch(given)
        label, path = match.groups() if match else ("", given)
        found |= dict.fromkeys(find_trials([path]), label.strip())
    return found


def group_trials(trials: Iterable[Trial], labels: Mapping[Path, str] | None = None) -> list[Group]:
    """Groups in the order of their first trials. Those with a label of their own are one group."""
    groups: dict[Any, list[Trial]] = {}
    for trial in trials:
        label = (labels or {}).get(trial.path, "")
        groups.setdefault(label or _key(trial), []).append(trial)
    names = _names([own[0] for key, own in groups.items() if isinstance(key, tuple)])
    result = []
    for key, own in groups.items():
        label = key if isinstance(key, str) else names[own[0].path]
        result.append(Group(label, tuple(own)))
    return result


def _key(trial: Trial) -> tuple[str, str]:
    given = {name: value for name, value in trial.params.items() if name != "seed"}
    # Without an algorithm, or parameters, only the experiment tells one from another.
    where = trial.algorithm if trial.algorithm and given else trial.experiment
    return where, json.dumps(given, sort_keys=True, default=str)


def _names(firsts: Sequence[Trial]) -> dict[Path, str]:
    """The experiment's name; where several groups have it, also what they differ in."""
    names = {}
    for trial in firsts:
        alike = [other for other in firsts if other.experiment == trial.experiment]
        flat = [flattened(other.params) for other in alike]
        own = flattened(trial.params)
        differs = [
            f"{key.rpartition('/')[2]}={_short(own[key])}"
            for key in own
            if key != "seed" and any(_json(f.get(key)) != _json(own[key]) for f in flat)
        ]
        parts = [trial.experiment, *differs] if len(alike) > 1 else [trial.experiment]
        names[trial.path] = " ".join(parts)
    return _distinct(names, firsts)


def _distinct(names: dict[Path, str], firsts: Sequence[Trial]) -> dict[Path, str]:
    """Two groups never share a name: the trial's, and if need be a number, comes after it."""
    taken: set[str] = set()
    for trial in firsts:
        name = names[trial.path]
        if name in taken:
            name = f"{name} {trial.path.name}"
        count = 2
        while name in taken:
            name, count = f"{names[trial.path]} ({count})", count + 1
        taken.add(name)
        names[trial.path] = name
    return names


def flattened(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """`{a: {b: 1}}` as `{a/b: 1}`."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{above}{key}/")
        else:
            flat[f"{above}{key}"] = value
    return flat


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:30]
