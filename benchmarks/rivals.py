"""What the systems of docs/rivals.md cost: seconds of an iteration over those of PPO alone.

    python benchmarks/rivals.py [NAME ...]      # all of tuned_examples/rivals/, on 1 key

All are built in one process and take turns, an iteration each, PPO in every round; ratios are of
medians. Every batch is learned from, also those without a success. Beside each ratio stands where
the seconds went: playing, paying, the policy's update, the reward models' own.

The Decision Transformer is left out: it learns from recordings and plays only to be measured. One
core; takes about 3 minutes. Prints `cost_NAME:` for each.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from runs import EXAMPLES, experiment, start_ray

from rllib_conspec import ConSpec, WholeEpisodePPO

PPO = "keys1_ppo"
ROUNDS, WARM = 9, 8  # the first rounds warm up: RND's statistics, RUDDER's lessons
PHASES = ("sample", "score", "rl_update", "reward_model")


def names() -> list[str]:
    found = sorted(file.stem for file in (EXAMPLES / "rivals").glob("*.yaml"))
    return [name for name in found if name != "decision_transformer"]


def built(name: str):
    config = experiment(name) | {"seed": 0, "learn_without_reward": True}
    kind = ConSpec if "conspec" in config else WholeEpisodePPO
    return kind.get_default_config().update_from_dict(config).build_algo()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=names())
    wanted = {name: f"rivals/{name}" for name in parser.parse_args().names}
    start_ray()
    algorithms = {
        name: built(file) for name, file in {"PPO": PPO, "conspec": "keys1", **wanted}.items()
    }
    seconds: dict[str, list[list[float]]] = {name: [] for name in algorithms}
    for n in range(ROUNDS + WARM):
        for name, algorithm in algorithms.items():
            start = time.perf_counter()
            phases = algorithm.train()["seconds"]
            if n >= WARM:
                whole = time.perf_counter() - start
                seconds[name].append([whole, *(phases.get(phase, 0.0) for phase in PHASES)])
    medians = {name: np.median(rows, axis=0) for name, rows in seconds.items()}
    for name, found in medians.items():
        where = ", ".join(f"{p} {s:.3f}" for p, s in zip(PHASES, found[1:], strict=True))
        print(f"  {name:16s} {found[0]:.3f} s an iteration ({where})")
    for name, found in medians.items():
        if name != "PPO":
            print(f"cost_{name}: {found[0] / medians['PPO'][0]:.2f}")


if __name__ == "__main__":
    main()
