"""A hyperparameter search of equal size for every rival, ConSpec and PPO, on 1 key.

    python benchmarks/search.py                      # all that is missing, one by one
    python benchmarks/search.py rnd rudder           # some of it, in a process of its own
    python benchmarks/search.py --table              # what is known so far, and the best of each

Each system has four settings: two learning rates of the policy, and two values of what its own
effect hangs on most. The first of each is the file's own. Every setting is trained with two seeds
that no comparison uses, for the same number of steps, and judged by its success averaged over these
steps: who learns sooner or more gets more. What is best goes into tuned_examples/rivals/.

A run adds a line to docs/results/rivals/search.csv when it ends, and runs that have one are left
out: several processes may share the work. One core; half a minute a run, two and a half on RMA.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any

from backbones import train
from runs import start_ray

# isort: split
import numpy as np

SEEDS = (10, 11)
STEPS = 65_000  # 1.5 times what ConSpec on PPO needs to 0.9
SOLVED = 0.95  # a run ends here, and counts as if it stayed so
RATES = (5e-4, 1e-3)
TABLE = Path(__file__).parents[1] / "docs" / "results" / "rivals" / "search.csv"
COLUMNS = ("system", "lr", "own", "seed", "steps", "mean_success")

Setting = dict[str, Any]


def model(name: str, **options: Any) -> Setting:
    return {"reward_models": {name: options}}


# System → its file, and two values of its own.
SYSTEMS: dict[str, tuple[str, tuple[Setting, Setting]]] = {
    "ppo": ("keys1_ppo", ({"entropy_coeff": 0.02}, {"entropy_coeff": 0.005})),
    "conspec": (
        "keys1",
        ({"conspec": {"intrinsic_coeff": 0.2}}, {"conspec": {"intrinsic_coeff": 0.5}}),
    ),
    "rnd": (
        "rivals/rnd",
        (model("rnd", own_stream=True, coeff=0.5), model("rnd", own_stream=True, coeff=0.1)),
    ),
    "rudder": (
        "rivals/rudder",
        (model("rudder", inputs="state"), model("rudder", inputs="change")),
    ),
    "rrd": ("rivals/rrd", (model("rrd", form="surrogate"), model("rrd", form="unbiased"))),
    "synthrs": (
        "rivals/synthrs",
        (model("synthrs", alpha=0.01), model("synthrs", alpha=0.1)),
    ),
    "synthrs_sigmoid": (
        "rivals/synthrs_sigmoid",
        (
            model("synthrs", gate="sigmoid", alpha=0.01),
            model("synthrs", gate="sigmoid", alpha=0.1),
        ),
    ),
    "curl": (
        "rivals/curl",
        ({"auxiliary": {"curl": {"coeff": 1.0}}}, {"auxiliary": {"curl": {"coeff": 0.1}}}),
    ),
    "rad": (
        "rivals/rad",
        ({"auxiliary": {"rad": {"change": "crop"}}}, {"auxiliary": {"rad": {"change": "cutout"}}}),
    ),
    "rims": ("rivals/rims", ({"clip_param": 0.1}, {"clip_param": 0.2})),
    "rma": (
        "rivals/rma",
        (
            {"auxiliary": {"reconstruct": {"image": 1.0}}},
            {"auxiliary": {"reconstruct": {"image": 10.0}}},
        ),
    ),
    "conspec_rma": (
        "rivals/conspec_rma",
        (
            {"conspec": {"num_prototypes": 16, "intrinsic_coeff": 0.2}},
            {"conspec": {"num_prototypes": 16, "intrinsic_coeff": 0.5}},
        ),
    ),
    "tvt": ("rivals/tvt", (model("tvt", alpha=0.9), model("tvt", alpha=0.3))),
}


def read() -> dict[tuple[str, float, int, int], float]:
    """(system, learning rate, which of its own values, seed) → mean success."""
    if not TABLE.exists():
        return {}
    with TABLE.open() as file:
        return {
            (row["system"], float(row["lr"]), int(row["own"]), int(row["seed"])): float(
                row["mean_success"]
            )
            for row in csv.DictReader(file)
        }


def write(*row: Any) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n")
    with TABLE.open("a") as file:
        file.write(",".join(map(str, row)) + "\n")


def mean_success(rows: list[dict]) -> float:
    """Success averaged over all steps; a run that was solved stays as it was."""
    steps = np.diff([0, *(row["steps"] for row in rows)])
    left = max(0, STEPS - rows[-1]["steps"])
    success = [row["success_rate"] for row in rows]
    total = float(np.dot(steps, success)) + left * rows[-1]["success_rate_20"]
    return total / (steps.sum() + left)


def search(system: str) -> None:
    example, own = SYSTEMS[system]
    for seed in SEEDS:
        for rate in RATES:
            for which, setting in enumerate(own):
                if (system, rate, which, seed) in read():
                    continue
                with tempfile.TemporaryDirectory() as scratch:
                    more = {"lr": rate, **setting}
                    rows = train(example, seed, STEPS, SOLVED, more, Path(scratch, "run.csv"))
                found = mean_success(rows)
                write(system, rate, which, seed, rows[-1]["steps"], round(found, 4))
                print(f"  {system}, lr {rate}, {setting}, seed {seed}: {found:.2f}", flush=True)


def show() -> None:
    """Every setting's mean over the seeds, and the best of each system."""
    known = read()
    for system, (_, own) in SYSTEMS.items():
        found = {}
        for rate in RATES:
            for which in range(len(own)):
                values = [known.get((system, rate, which, seed)) for seed in SEEDS]
                if None not in values:
                    found[rate, which] = float(np.mean(values))
        for (rate, which), value in found.items():
            print(f"  {system}: lr {rate}, {own[which]}: {value:.3f}")
        if found:
            rate, which = max(found, key=found.__getitem__)
            print(f"best_{system}: lr {rate}, {own[which]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--table", action="store_true", help="only what is known")
    given = parser.parse_args()
    if unknown := set(given.systems) - SYSTEMS.keys():
        parser.error(f"no such system: {', '.join(sorted(unknown))}")
    if not given.table:
        start_ray(cpus=1)
        for system in given.systems:
            search(system)
    show()


if __name__ == "__main__":
    main()
