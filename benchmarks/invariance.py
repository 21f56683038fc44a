"""Do OrangeTree's prototypes mean "a flat object", whatever its colour and whatever the room?

    python benchmarks/invariance.py results/orangetree_inprocess

Plays 1024 episodes with the trained policy of the newest checkpoint of every trial, in training
colours, with black objects, in the other room and in random colours of everything, in process (the
players show the same pixels). The last lines are the success in each variant over the success in
training colours, `black_ratio:`, `room_ratio:` and `random_ratio:`, medians over the trials.
For each frozen prototype, in the first 256 episodes of each variant:
- flat: of the episodes that take a flat object, the share in which its best match lies within 2
  steps of the taking, and its mean score there,
- other: of the episodes that take a round or spiky object, the share in which it matches that step
  well enough to pay.

Takes about three minutes a trial; the error of a success rate is about 0.01, that of a ratio 0.015.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Sets the number of threads before torch is imported.
from critical_steps import UNPLAYED, load_learner, newest_checkpoints, play

import numpy as np  # isort: skip
import ray
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.scorer import episode_scores
from rllib_conspec.reward_models.moments import NEAR
from rllib_conspec.tasks.orangetree.layout import VARIANTS
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

PLAYED, AT_A_TIME = 1024, 256  # pictures of 256 episodes take 350 MB
EVENTS = ("flat_taken", "other_taken", "orange_picked")


def step_of(episode: Episode, name: str) -> int | None:
    return next((t for t, event in episode.events if event.startswith(name)), None)


def measure(learner: ConSpecLearner, episodes: list[Episode]) -> list[str]:
    """One line per frozen prototype."""
    scores = episode_scores(learner.model, episodes)
    taken = {name: [step_of(e, name) for e in episodes] for name in EVENTS}
    lines = []
    for i in np.flatnonzero(learner.met):
        flat = [
            (s[i], t) for s, t in zip(scores, taken["flat_taken"], strict=True) if t is not None
        ]
        near = [abs(int(s.argmax()) - t) <= NEAR for s, t in flat]
        other = [
            s[i, max(0, t - NEAR) : t + NEAR + 1].max() > learner.options.threshold
            for s, t in zip(scores, taken["other_taken"], strict=True)
            if t is not None
        ]
        at = [s[max(0, t - NEAR) : t + NEAR + 1].max() for s, t in flat]
        lines.append(
            f"  prototype {i}: flat {_mean(near):.2f} (score {_mean(at):.2f}, {len(flat)} episodes)"
            f", other {_mean(other):.2f} ({len(other)})"
        )
    return lines


def _mean(values: list) -> float:
    return float(np.mean(values)) if values else float("nan")


def main(directories: list[str]) -> int:
    checkpoints: list[Path] = [c for d in directories for c in newest_checkpoints(d)]
    if not checkpoints:
        print(__doc__)
        return 2
    # RLlib's own environments know nothing of events; the in-process one tells all of them.
    OrangeTreeVectorEnv.critical_events = EVENTS
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    figures = {}
    for checkpoint in checkpoints:
        learner = load_learner(checkpoint)
        algorithm = Algorithm.from_checkpoint(str(checkpoint.absolute()))
        print(checkpoint.parent)
        for variant in VARIANTS:
            won = []
            for batch in range(PLAYED // AT_A_TIME):
                episodes = play(
                    algorithm,
                    AT_A_TIME,
                    position=UNPLAYED + batch,
                    env="rllib_conspec:OrangeTree-v0",
                    env_config={"variant": variant},
                )
                won += [e.success for e in episodes]
                if batch == 0:
                    lines = measure(learner, episodes)
            success = float(np.mean(won))
            print(f" {variant}: success {success:.3f}", *lines, sep="\n", flush=True)
            figures.setdefault(variant, []).append(success)
        algorithm.stop()
    for variant, rates in figures.items():
        print(f"success_{variant}: {np.mean(rates):.3f}")
    for variant in VARIANTS[1:]:
        ratios = np.divide(figures[variant], figures["train"])
        print(f"{variant}_ratio: {np.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
