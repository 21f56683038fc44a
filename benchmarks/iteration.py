"""Where an iteration's time goes: seconds per phase for ConSpec and plain PPO.

keys2 and keys4 with 0, 1 and 2 remote runners; then each phase's growth with the number
of episodes and with their length. Memories are full and all prototypes live.

Takes about 8 minutes.
"""

from __future__ import annotations

import numpy as np
from runs import build, experiment, fill_memories, start_ray

PHASES = ["sample", "score", "rl_update", "reward_model", "iteration"]
ITERATIONS = 4


def phases(config: dict, keys: int, *, conspec: bool, runners: int) -> dict[str, float]:
    """Median seconds of every phase, and environment steps per second."""
    config = config | {"seed": 0, "learn_without_reward": True}
    algorithm = build(config, conspec=conspec, runners=runners)
    if conspec:
        fill_memories(algorithm, keys, frozen=False)
    results = [algorithm.train() for _ in range(ITERATIONS + 1)][1:]
    steps = [r["env_runners"]["num_env_steps_sampled"] for r in results]
    algorithm.stop()
    found = {p: float(np.median([r["seconds"].get(p, 0.0) for r in results])) for p in PHASES}
    return found | {"steps/s": float(np.mean(steps)) / found["iteration"]}


def show(label: str, found: dict[str, float]) -> None:
    cells = "".join(f"{found[p]:>13.3f}" for p in PHASES)
    print(f"{label:34s}{cells}{found['steps/s']:>10.0f}", flush=True)


def main() -> None:
    start_ray(cpus=8)
    print(f"{'':34s}" + "".join(f"{p:>13s}" for p in PHASES) + f"{'steps/s':>10s}")
    speed = {}
    for keys in (2, 4):
        config = experiment(f"keys{keys}")
        for conspec in (False, True):
            for runners in (0, 1, 2):
                found = phases(config, keys, conspec=conspec, runners=runners)
                label = f"{'ConSpec' if conspec else 'PPO'} keys{keys} {runners} runners"
                show(label, found)
                speed[conspec, keys, runners] = found["steps/s"]
    config = experiment("keys2")
    for episodes in (8, 16, 32, 64):
        found = phases(config | {"episodes_per_batch": episodes}, 2, conspec=True, runners=0)
        show(f"ConSpec keys2 {episodes} episodes", found)
    for keys in (1, 2, 3, 4):
        config = experiment("keys2") | {"env_config": {"keys": keys}}
        found = phases(config, keys, conspec=True, runners=0)
        show(f"ConSpec {(65, 125, 185, 245)[keys - 1]} steps an episode", found)
    for (conspec, keys, runners), steps in speed.items():
        name = "conspec" if conspec else "ppo"
        print(f"steps_per_second_{name}_keys{keys}_{runners}_runners: {steps:.0f}")


if __name__ == "__main__":
    main()
