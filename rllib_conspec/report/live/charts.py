"""Which curve is drawn in which chart, by the name of a metric alone.

Reward models have sections of their own in a result. What is in them is not known here: whole
numbers (what is in memory, who pays) belong together, the rest by the first word of its name.
"""

from __future__ import annotations

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


def place(metric: str, models: Iterable[str], whole: bool) -> tuple[str, str, str] | None:
    """(group, chart, curve) of a metric; None: not drawn. `whole`: it was never a fraction."""
    if metric in FIXED:
        return FIXED[metric]
    first, _, rest = metric.partition("/")
    if first == PHASES and rest:
        return ("machine", "Seconds per phase", rest)
    if first not in models or not rest:
        return None
    chart, nested, curve = rest.rpartition("/")
    if nested:
        return ("models", f"{first}: {chart}", curve)
    if whole:
        return ("models", f"{first}: counts", rest)
    return ("models", f"{first}: {rest.partition('_')[0]}", rest)


def layout(metrics: Mapping[str, bool], models: Iterable[str]) -> list[dict[str, Any]]:
    """All charts of these metrics (name → whether it was whole so far), in the order on the page:
    {group, title, curves: [[metric, name], …]}.
    """
    models = list(models)
    fixed = list(FIXED)
    order = sorted(metrics, key=lambda m: fixed.index(m) if m in FIXED else len(fixed))
    charts: dict[tuple[str, str], list[list[str]]] = {}
    for metric in order:
        if found := place(metric, models, metrics[metric]):
            group, title, curve = found
            charts.setdefault((group, title), []).append([metric, curve])
    return [
        {"group": group, "title": title, "curves": curves}
        for (group, title), curves in charts.items()
    ]
