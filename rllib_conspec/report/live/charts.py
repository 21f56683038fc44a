"""Which curve is drawn in which chart, by the name of a metric alone.

Reward models have sections of their own in a result. What is in them is not known here: whole
numbers (what is in memory, who pays) belong together, others by the first word of their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

X = {
    "num_env_steps_sampled_lifetime": "environment steps",
    "training_iteration": "iterations",
    "time_total_s": "seconds of training",
}
SPEED = "steps_per_second"  # not in results: worked out from them

# metric → (group, chart, curve), in the order on the page
FIXED = {
    "env_runners/success_rate": ("learning", "Success", "of an iteration"),
    "env_runners/success_rate_20": ("learning", "Success", "mean of 20 iterations"),
    "env_runners/episode_return_mean": ("learning", "Return", "mean of an iteration"),
    "env_runners/intrinsic_return_mean": ("models", "Paid by reward models", "per episode"),
    SPEED: ("machine", "Speed", "steps/s"),
    "fault_tolerance/num_healthy_workers": ("machine", "Workers", "healthy"),
    "fault_tolerance/num_remote_worker_restarts": ("machine", "Workers", "restarts"),
    "env_runners/num_episodes_dropped_lifetime": ("machine", "Workers", "episodes dropped"),
    "learners/default_policy/entropy": ("learning", "Entropy of the policy", "mean"),
}
PHASES = "seconds"


def sections(row: Mapping[str, Any]) -> list[str]:
    """Where a result has the metrics of its reward models: under the names of their classes."""
    config = row.get("config")
    named = config.get("reward_models") if isinstance(config, Mapping) else None
    found = []
    for name in named if isinstance(named, Mapping) else ():
        places = (str(name), str(name).rpartition(":")[2].lower())
        found += [p for p in places if isinstance(row.get(p), Mapping)][:1]
    return found


def place(metric: str, models: Iterable[str]) -> tuple[str, str, str] | None:
    """(group, chart, curve) of a metric; None: not drawn. Charts of reward models are by name."""
    if metric in FIXED:
        return FIXED[metric]
    first, _, rest = metric.partition("/")
    if first == PHASES and rest:
        return ("machine", "Seconds per phase", rest)
    if first not in models or not rest:
        return None
    chart, nested, curve = rest.rpartition("/")
    return ("models", f"{first}: {chart if nested else rest.partition('_')[0]}", curve)


def layout(metrics: Mapping[str, float | None], models: Iterable[str]) -> list[dict[str, Any]]:
    """All charts of these metrics (name → largest value if all were whole numbers, else None), in
    the order on the page: {group, title, curves: [[metric, name], …]}.
    """
    models, fixed = list(models), list(FIXED)
    counts = _counts(metrics, models)
    order = sorted(
        metrics, key=lambda m: (fixed.index(m) if m in FIXED else len(fixed), _natural(m))
    )
    charts: dict[tuple[str, str], list[list[str]]] = {}
    for metric in order:
        if found := place(metric, models):
            group, title, curve = found
            title = counts.get(metric, title)
            charts.setdefault((group, title), []).append([metric, curve])
    return [
        {"group": group, "title": title, "curves": curves}
        for (group, title), curves in charts.items()
    ]


def _counts(metrics: Mapping[str, float | None], models: Iterable[str]) -> dict[str, str]:
    """Titles for counts of reward models. A chart holds those of a like size: of a few things
    beside a thousand nothing could be seen.
    """
    titles = {}
    for model in models:
        own = {
            metric: peak
            for metric, peak in metrics.items()
            if peak is not None and metric.startswith(f"{model}/") and metric.count("/") == 1
        }
        small = {metric for metric, peak in own.items() if peak * 10 < max(own.values())}
        for together in (small, own.keys() - small):
            names = ", ".join(sorted(metric.partition("/")[2] for metric in together))
            titles |= dict.fromkeys(together, f"{model}: {names}")
    return titles


def _natural(text: str) -> list[tuple[int, str]]:
    """So that 10 comes after 9."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", text)]
