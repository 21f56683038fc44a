"""Is it as fast as before? Iterations of another commit and of this directory, turn by turn.

    python benchmarks/against.py COMMIT

PPO and ConSpec on keys2 and on OrangeTree (in process), small sizes. Both programs stay alive and
train in turn, one iteration each, so that whatever else the machine does slows both. keys2 has its
memories filled; OrangeTree plays its first 24 iterations, of which the second half counts.

Takes about 12 minutes. Prints `against_ppo_keys2:` and so on: median seconds here over those there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
# Names of the small examples; older commits have the first.
EXAMPLES = {
    "keys2": ("cpu/keys2", "keys2"),
    "orangetree": ("cpu/orangetree", "orangetree_inprocess"),
}
TURNS = {"keys2": 32, "orangetree": 24}
# Runs in either checkout, with that checkout's own benchmarks/runs.py: one line in, one line out.
CHILD = """
import json, sys, time
import runs
runs.start_ray(cpus=2)
algorithm = None
for line in sys.stdin:
    task, conspec, examples = json.loads(line)
    if task:
        if algorithm is not None:
            algorithm.stop()
        name = next(n for n in examples if (runs.EXAMPLES / f"{n}.yaml").exists())
        config = runs.experiment(name) | {"seed": 0, "learn_without_reward": True}
        algorithm = runs.build(config, conspec=conspec)
        if conspec and task == "keys2":
            runs.fill_memories(algorithm, 2, frozen=False)
    start = time.perf_counter()
    algorithm.train()
    print(f"seconds {time.perf_counter() - start}", flush=True)
"""


class Checkout:
    """One program that trains when it is told to."""

    def __init__(self, path: Path) -> None:
        setup = f"import sys; sys.path[:0] = [{str(path / 'benchmarks')!r}, {str(path)!r}]\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", setup + CHILD],
            cwd=path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def train(self, task: str = "", conspec: bool = False) -> float:
        """Seconds of one iteration; with a task, of the first one of a new algorithm."""
        order = json.dumps([task, conspec, EXAMPLES.get(task)])
        print(order, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit(
            "one of the two programs ended: run its benchmarks/iteration.py to see why"
        )


def compare(there: Checkout, here: Checkout, task: str, *, conspec: bool) -> float:
    for checkout in (there, here):
        checkout.train(task, conspec)
    seconds = np.zeros((TURNS[task], 2))
    for turn in range(len(seconds)):
        # Who comes second finds the caches full of the other's: each does so every other time.
        for which in (0, 1) if turn % 2 else (1, 0):
            seconds[turn, which] = (there, here)[which].train()
    seconds = seconds[len(seconds) // 2 :]
    before, now = np.median(seconds, axis=0)
    print(
        f"  {task:10s} {'ConSpec' if conspec else 'PPO':8s} {before:.3f} s, here {now:.3f} s",
        flush=True,
    )
    return float(now / before)


def main(commit: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / "other"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(other), commit],
            cwd=HERE,
            check=True,
        )
        try:
            there, here = Checkout(other), Checkout(HERE)
            found = {
                f"{'conspec' if conspec else 'ppo'}_{task}": compare(
                    there, here, task, conspec=conspec
                )
                for task in EXAMPLES
                for conspec in (False, True)
            }
            for checkout in (there, here):
                checkout.process.stdin.close()
                checkout.process.wait()
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(other)], cwd=HERE, check=True
            )
    for name, ratio in found.items():
        print(f"against_{name}: {ratio:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
