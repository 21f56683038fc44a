"""When does ConSpec help? Steps that ConSpec and PPO need, by the gap between choice and reward.

    python benchmarks/gap.py                                  # all that is missing, one by one
    python benchmarks/gap.py --gap 100 --run PPO --seed 0 1   # some of it, in a process of its own
    python benchmarks/gap.py --draw                           # table and picture only

`gap_env.py` with 20, 50, 100, 200 and 400 steps between the one choice that counts and the door
that pays for it; both algorithms as they are without any options, 3 seeds each, until the success
rate of 20 iterations is 0.8 or the budget is spent. Every run adds a line to
docs/results/gap/gap.csv when it ends (`steps` is empty if 0.8 was not reached), and runs that have
one are left out: several processes may share the work, and one that was stopped takes it up again.
The picture is docs/images/gap.png.

One core a run. Expect `worst_ratio:` (ConSpec's median steps over PPO's, largest of all gaps) of at
most 1.1 and `far_ratio:` (largest from 100 steps on) of at most 0.5. A PPO that has not got there
counts with its budget, so that ratios are upper bounds.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib
import numpy as np
import ray
from gap_env import Gap

from rllib_conspec import ConSpec, WholeEpisodePPO

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ALGORITHMS = {"ConSpec": ConSpec, "PPO": WholeEpisodePPO}
GAPS = (20, 50, 100, 200, 400)
SEEDS = (0, 1, 2)
AIM = 0.8
BUDGET = 2500  # episodes
DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "results" / "gap" / "gap.csv"
PICTURE = DOCS / "images" / "gap.png"
COLUMNS = ("gap", "algorithm", "seed", "steps", "budget")


def budget(gap: int) -> int:
    """Environment steps of a run: those of so many episodes as long as they get."""
    return BUDGET * Gap(gap).max_episode_steps


def run(gap: int, algorithm: str, seed: int) -> int | None:
    """Steps until 0.8 of 20 iterations succeed, or None if the budget does not suffice."""
    config = ALGORITHMS[algorithm].get_default_config()
    config.environment("gap_env:Gap", env_config={"gap": gap})
    algo = config.debugging(seed=seed).build_algo()
    steps, start, shown = 0, time.monotonic(), 0
    try:
        while steps < budget(gap):
            found = algo.train()["env_runners"]
            steps = int(found["num_env_steps_sampled_lifetime"])
            success = found["success_rate_20"]
            if success >= AIM:
                return steps
            if steps - shown > budget(gap) / 20:
                shown = steps
                minutes = (time.monotonic() - start) / 60
                print(f"    {steps:,} steps, {minutes:.1f} min: {success:.2f}", flush=True)
        return None
    finally:
        algo.stop()


def read() -> dict[tuple[int, str, int], tuple[int | None, int]]:
    """Steps (None: not reached) and budget of every run that has ended."""
    if not TABLE.exists():
        return {}
    with TABLE.open() as file:
        return {
            (int(row["gap"]), row["algorithm"], int(row["seed"])): (
                int(row["steps"]) if row["steps"] else None,
                int(row["budget"]),
            )
            for row in csv.DictReader(file)
        }


def write(*row: int | str) -> None:
    """Add a line, in one piece, so that processes do not write into each other's."""
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n")
    with TABLE.open("a") as file:
        file.write(",".join(map(str, row)) + "\n")


def draw() -> None:
    """Print the table, draw the picture."""
    found = read()
    figure, axis = plt.subplots(figsize=(6, 4))
    median: dict[tuple[str, int], float] = {}
    for algorithm, marker in (("ConSpec", "o"), ("PPO", "s")):
        for gap in GAPS:
            runs = [v for (g, a, _), v in sorted(found.items()) if (g, a) == (gap, algorithm)]
            if not runs:
                continue
            shown = ", ".join(f"{s:,}" if s else f"not in {b:,}" for s, b in runs)
            print(f"  gap {gap}, {algorithm}: {shown}")
            median[algorithm, gap] = float(np.median([s or b for s, b in runs]))
        line = [(gap, median[algorithm, gap]) for gap in GAPS if (algorithm, gap) in median]
        (drawn,) = axis.plot(*zip(*line, strict=True), label=algorithm) if line else (None,)
        for (gap, name, _), (steps, spent) in found.items():
            if name == algorithm:
                # Hollow: not reached, drawn at the budget.
                fill = drawn.get_color() if steps else "none"
                axis.scatter(
                    gap, steps or spent, marker=marker, facecolor=fill, edgecolor=drawn.get_color()
                )
    axis.set(xscale="log", yscale="log", xlabel="steps between choice and reward")
    axis.set_ylabel(f"environment steps to a success rate of {AIM}")
    axis.set_xticks(GAPS, [str(gap) for gap in GAPS])
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axis.legend(title="median; hollow: not reached")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)
    ratios = {
        gap: median["ConSpec", gap] / median["PPO", gap]
        for gap in GAPS
        if ("ConSpec", gap) in median and ("PPO", gap) in median
    }
    if ratios:
        print(f"worst_ratio: {max(ratios.values()):.2f}")
    if far := [ratio for gap, ratio in ratios.items() if gap >= 100]:
        print(f"far_ratio: {max(far):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gap", type=int, nargs="*", default=GAPS, choices=GAPS)
    parser.add_argument("--run", nargs="*", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--seed", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--draw", action="store_true", help="table and picture only")
    wanted = parser.parse_args()
    if not wanted.draw:
        ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
        for gap, seed, name in (
            (g, s, n) for g in wanted.gap for s in wanted.seed for n in wanted.run
        ):
            if (gap, name, seed) not in read():
                print(f"  gap {gap}, {name}, seed {seed}", flush=True)
                steps = run(gap, name, seed)
                write(gap, name, seed, steps or "", budget(gap))
    draw()


if __name__ == "__main__":
    main()
