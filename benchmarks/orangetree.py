"""How fast OrangeTree is: the world alone, and as a player process.

- the world: 8 games in this process on one core, random actions, whole episodes, so that every
  stage counts as often as it is played; pictures and rules, best of 15 rounds
- one player with 1, 8 and 16 agents: the same through ML-Agents' protocol, from another process
- player_share: frames/s of a player with 8 agents over those of the world, rounds taken in turns so
  that both meet the same machine
- 2 runners: two processes like a rollout worker, each with a player of 8 agents, at the same time
- player_mb: resident memory of the player with 16 agents, after its episodes

Takes about 40 seconds. Expect `ms_per_frame:` of at most 1.2, `player_share:` of at least 0.6 and
`player_mb:` under 150.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv
from rllib_conspec.unity.client.vector import UnityVectorEnv

ROUNDS = 15
RUNNER_SECONDS = 5


def play(envs) -> float:
    """Milliseconds per frame of one round: an episode, with the step that begins the next one."""
    rng = np.random.default_rng(0)
    actions = rng.integers(4, size=(envs.max_episode_steps + 1, envs.num_envs))
    start = time.perf_counter()
    for row in actions:
        envs.step(row)
    return (time.perf_counter() - start) / actions.size * 1e3


def world(num_envs: int = 8) -> float:
    """Milliseconds per frame of the world alone."""
    envs = OrangeTreeVectorEnv(num_envs)
    envs.reset(seed=0)
    times = [play(envs) for _ in range(ROUNDS)]
    best, middle = min(times), np.median(times)
    print(f"  world, {num_envs} games: {best:.2f} ms per frame, median {middle:.2f}", flush=True)
    return best


def player(agents: int) -> tuple[float, float]:
    """Frames/s of a player over those of the world, and the player's resident memory in MB."""
    begun = time.perf_counter()
    envs, alone = UnityVectorEnv(agents), OrangeTreeVectorEnv(agents)
    seconds = time.perf_counter() - begun
    for each in (envs, alone):
        each.reset(seed=0)
    pairs = [(play(envs), play(alone)) for _ in range(ROUNDS)]
    best, best_alone = (min(times) for times in zip(*pairs, strict=True))
    status = Path(f"/proc/{envs.pid}/status").read_text()
    megabytes = int(status.split("VmRSS:")[1].split()[0]) / 1024
    envs.close()
    print(
        f"  player, {agents} agents: {1e3 / best:.0f} frames/s, {best_alone / best:.2f} of the "
        f"world's, {megabytes:.0f} MB, ready after {seconds:.1f} s",
        flush=True,
    )
    return best_alone / best, megabytes


def runner() -> None:
    """Print the frames/s of a player that is not alone on this machine."""
    envs = UnityVectorEnv(8)
    envs.reset(seed=0)
    print("ready", flush=True)
    sys.stdin.readline()
    frames, end = 0, time.perf_counter() + RUNNER_SECONDS
    while time.perf_counter() < end:
        play(envs)
        frames += 8 * (envs.max_episode_steps + 1)
    print(frames / (time.perf_counter() - end + RUNNER_SECONDS))
    envs.close()


def runners(count: int = 2) -> float:
    """Frames/s of several runners together."""
    command = [sys.executable, __file__, "runner"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    speeds = [float(process.communicate()[0]) for process in started]
    print(f"  {count} runners: {' + '.join(f'{s:.0f}' for s in speeds)} frames/s", flush=True)
    return sum(speeds)


def main() -> None:
    figures = {"ms_per_frame": world()}
    player(1)
    figures["player_share"], _ = player(8)
    _, figures["player_mb"] = player(16)
    figures["two_runners_frames_per_second"] = runners()
    for name, figure in figures.items():
        print(f"{name}: {figure:.3f}")


if __name__ == "__main__":
    runner() if sys.argv[1:] == ["runner"] else main()
