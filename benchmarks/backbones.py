"""ConSpec on other algorithms: curves, and what ConSpec costs each of them.

    python benchmarks/backbones.py DIRECTORY FILE... [--seeds 0 1 2] [--steps 300000] [--aim 0.9]

Trains files of tuned_examples/ (`backbones/dqn_keys1`), one after the other in this process, so
that its CPU time is the run's, until `success_rate_20` reaches the aim or the steps are over.
Writes a row an iteration into DIRECTORY/<file>_<seed>.csv. Seconds are those since the algorithm
was built: `reward_model` is what ConSpec's learning took, `score` what paying took, and `replay`
what paying again took, of the `iteration`.

Prints, for each, steps and CPU seconds at the aim, the iteration at which the first prototype was
frozen and the one of the first pay, and ConSpec's share of the time. Minutes to an hour a run.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path
from typing import Any

import runs
import yaml
from ray.tune.registry import get_trainable_cls

SUCCESS = ("env_runners", "success_rate_20")
STEPS = ("num_env_steps_sampled_lifetime",)
COLUMNS: dict[str, tuple[str, ...]] = {
    "steps": STEPS,
    "success_rate_20": SUCCESS,
    "success_rate": ("env_runners", "success_rate"),
    "return": ("env_runners", "episode_return_mean"),
    "intrinsic_return": ("env_runners", "intrinsic_return_mean"),
    "frozen": ("conspec", "frozen"),
}
PHASES = ("iteration", "reward_model", "score", "replay")  # summed over iterations


def found(result: dict, path: tuple[str, ...]) -> float:
    for name in path:
        result = result.get(name, {}) if isinstance(result, dict) else {}
    known = isinstance(result, int | float) and not math.isnan(result)
    return float(result) if known else 0.0


def train(name: str, seed: int, steps: int, aim: float, more: dict, file: Path) -> list[dict]:
    """Train one of the files; a row an iteration, on disk as soon as it is there."""
    (content,) = yaml.safe_load((runs.EXAMPLES / f"{name}.yaml").read_text()).values()
    config = get_trainable_cls(content["run"]).get_default_config()
    settings = content["config"] | {"env": content["env"], "seed": seed} | more
    algorithm = config.update_from_dict(settings).build_algo()
    start, cpu = time.perf_counter(), time.process_time()
    rows, spent = [], dict.fromkeys(PHASES, 0.0)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as out:
        table = csv.DictWriter(out, [*COLUMNS, *PHASES, "seconds", "cpu_seconds"])
        table.writeheader()
        while not rows or (rows[-1]["steps"] < steps and rows[-1]["success_rate_20"] < aim):
            result = algorithm.train()
            spent = {p: s + found(result, ("seconds", p)) for p, s in spent.items()}
            row: dict[str, Any] = {c: round(found(result, p), 4) for c, p in COLUMNS.items()}
            row |= {phase: round(seconds, 2) for phase, seconds in spent.items()}
            row |= {"seconds": round(time.perf_counter() - start, 1)}
            row |= {"cpu_seconds": round(time.process_time() - cpu, 1)}
            row |= {name: int(row[name]) for name in ("steps", "frozen")}
            rows.append(row)
            table.writerow(row)
            out.flush()
    algorithm.stop()
    return rows


def told(rows: list[dict], aim: float) -> str:
    """What became of a run, in a line."""

    def first(true) -> str:
        return str(next((i + 1 for i, row in enumerate(rows) if true(row)), "never"))

    last = rows[-1]
    reached = last["success_rate_20"] >= aim
    learning = last["reward_model"] / max(last["iteration"], 1e-9)
    return (
        f"{'reached' if reached else 'not reached'} {aim}; {last['steps']:,} steps, "
        f"{last['cpu_seconds']:.0f} CPU s, {last['seconds']:.0f} s; success "
        f"{last['success_rate_20']:.2f}; return {last['return']:.2f}; first frozen at iteration "
        f"{first(lambda row: row['frozen'])}, first paid at "
        f"{first(lambda row: row['intrinsic_return'])}; ConSpec learned for {learning:.0%} of the "
        f"time and paid for {last['score'] / max(last['iteration'], 1e-9):.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--aim", type=float, default=0.9)
    parser.add_argument("--config", type=yaml.safe_load, default={}, help="laid over the file's")
    parser.add_argument("--label", default="", help="part of the file names")
    given = parser.parse_args()
    runs.start_ray(cpus=1)
    for name in given.files:
        for seed in given.seeds:
            label = f"_{given.label}" if given.label else ""
            path = given.directory / f"{Path(name).name}{label}_{seed}.csv"
            rows = train(name, seed, given.steps, given.aim, given.config, path)
            print(f"{path.stem}: {told(rows, given.aim)}", flush=True)


if __name__ == "__main__":
    main()
