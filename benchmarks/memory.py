"""Does the learner's memory stay flat? 500 iterations of ConSpec on keys1 with all prototypes
frozen.

The learner, with memories and exemplars, lives in this process, so its resident size is what is
measured: after 100
iterations, when every buffer is full, and after 500.

Takes about 6 minutes. Expect `growth_mb:` of less than 30 (allocator noise), over 400 iterations.
"""

from __future__ import annotations

import gc
from pathlib import Path

from runs import build, experiment, fill_memories, start_ray


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    start_ray()
    config = experiment("keys1") | {"seed": 0}
    algorithm = build(config, conspec=True)
    fill_memories(algorithm, keys=1, frozen=True)
    start = 0.0
    for iteration in range(1, 501):
        result = algorithm.train()
        if iteration == 100:
            start = resident_mb()
        if iteration % 100 == 0:
            frozen = int(result["conspec"]["frozen"])
            size = resident_mb()
            print(f"  iteration {iteration}: {size:.0f} MB, {frozen} prototypes frozen", flush=True)
    print(f"growth_mb: {resident_mb() - start:.1f}")
    algorithm.stop()


if __name__ == "__main__":
    main()
