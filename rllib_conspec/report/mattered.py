"""What mattered in a sweep: the values that differ between its groups, and what these reached.

How much each value mattered is Optuna's PED-ANOVA: how differently the best and all are spread over
it (https://arxiv.org/abs/2304.10255).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_conspec.report.groups import Group, flattened

FEWEST = 4  # groups of one experiment: fewer say nothing about what mattered
BEST = 0.25  # share of the groups that counts as the best
LOG = 30.0  # values whose largest is so many times their smallest lie on a log axis


@dataclass(frozen=True)
class Axis:
    """One value, in the order of the groups."""

    name: str
    values: Sequence[Any]
    log: bool = False
    choices: Sequence[str] = ()  # of a value that is no number, in their order on the axis

    @property
    def numbers(self) -> np.ndarray:
        if self.choices:
            return np.array([self.choices.index(_text(v)) for v in self.values], float)
        return np.array([float(v) for v in self.values])

    @property
    def places(self) -> np.ndarray:
        """Where each lies on the axis: 0 … 1."""
        at = np.log(self.numbers) if self.log else self.numbers
        low, high = at.min(), at.max()
        return (at - low) / (high - low) if high > low else np.full(len(at), 0.5)

    @property
    def ends(self) -> tuple[str, str]:
        if self.choices:
            return self.choices[0], self.choices[-1]
        return f"{self.numbers.min():.4g}", f"{self.numbers.max():.4g}"

    def text(self, i: int) -> str:
        value = self.values[i]
        return f"{value:.4g}" if isinstance(value, float) else _text(value)


@dataclass(frozen=True)
class Sweep:
    """The groups of one experiment that differ in some values."""

    experiment: str
    labels: Sequence[str]
    axes: Sequence[Axis]
    reached: Axis  # what they are compared by
    importance: Mapping[str, float]  # value → its share of 1, most important first

    @property
    def order(self) -> list[int]:
        """Groups, best first."""
        return sorted(range(len(self.labels)), key=lambda i: -float(self.reached.values[i]))


def sweeps(groups: Sequence[Group], reached: Mapping[str, float], what: str) -> list[Sweep]:
    """One for each experiment of which enough groups differ and have got anywhere."""
    by: dict[str, list[Group]] = {}
    for group in groups:
        if math.isfinite(reached.get(group.label, math.nan)):
            by.setdefault(group.trials[0].experiment, []).append(group)
    found = []
    for experiment, own in by.items():
        axes = _axes(own)
        if len(own) < FEWEST or not axes:
            continue
        values = Axis(what, [float(reached[g.label]) for g in own])
        labels = [g.label for g in own]
        found.append(Sweep(experiment, labels, axes, values, _importance(axes, values)))
    return found


def _axes(groups: Sequence[Group]) -> list[Axis]:
    """What all of them have, and not all alike."""
    flat = [flattened(g.trials[0].params) for g in groups]
    axes = []
    for name in flat[0]:
        if name == "seed" or not all(name in own for own in flat):
            continue
        values = [own[name] for own in flat]
        if len({_text(v) for v in values}) > 1:
            axes.append(_axis(name, values))
    return axes


def _axis(name: str, values: Sequence[Any]) -> Axis:
    title = name.replace("/", ".")
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return Axis(title, values, choices=sorted({_text(v) for v in values}))
    low, high = min(values), max(values)
    return Axis(title, values, log=low > 0 and high / low >= LOG)


def _importance(axes: Sequence[Axis], reached: Axis) -> dict[str, float]:
    # The best that can be said where nothing differs: all alike.
    if reached.numbers.min() == reached.numbers.max():
        return {axis.name: 1 / len(axes) for axis in axes}
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    space = {axis.name: _distribution(axis) for axis in axes}
    for i, value in enumerate(reached.numbers):
        at = {a.name: _text(a.values[i]) if a.choices else float(a.numbers[i]) for a in axes}
        study.add_trial(
            optuna.trial.create_trial(params=at, distributions=space, value=float(value))
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this way of measuring is experimental
        evaluator = PedAnovaImportanceEvaluator(target_quantile=BEST)
        return get_param_importances(study, evaluator=evaluator)


def _distribution(axis: Axis) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if axis.choices:
        return CategoricalDistribution(axis.choices)
    return FloatDistribution(axis.numbers.min(), axis.numbers.max(), log=axis.log)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
