"""How much of its time does the whole system spend on the game and the policy's network?

Bare: ale-py's emulator, the policy's network acting in it, and the same network trained on every
frame, forward and backward, as often as PPO does; no advantages, no batches of RLlib's, no ConSpec.
The whole: `rllib train -f tuned_examples/atari/airraid.yaml` with all prototypes paying, on the
same game, in the same process, turn by turn. CPU seconds of one core.

    python benchmarks/atari.py

Takes about 5 minutes. Expect `share:` of at least 0.5.
"""

from __future__ import annotations

import time

from runs import build, start_ray

# isort: split
import numpy as np
import torch
from atari_games import GAME, bare_policy, config, random_episodes

from rllib_conspec.tasks.atari.vector import STEPS, AtariColourVectorEnv

TURNS = 3
ENVS, MINIBATCH, EPOCHS = 8, 2, 4  # of the preset


class Bare:
    """The emulator and the network, and nothing else."""

    def __init__(self) -> None:
        self.env = AtariColourVectorEnv(ENVS, GAME, delayed=True)
        spaces = self.env.single_observation_space, self.env.single_action_space
        self.policy = bare_policy(*spaces)
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def iterate(self) -> int:
        frames = self._play()
        for _ in range(EPOCHS):
            for some in torch.from_numpy(frames).split(MINIBATCH * STEPS):
                features = self.policy.encoder(some)
                loss = self.policy.actor(features).square().mean()
                loss = loss + self.policy.value(features).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        return len(frames)

    def _play(self) -> np.ndarray:
        seen, _ = self.env.reset(seed=0)
        frames = np.empty((STEPS, *seen.shape), np.uint8)
        with torch.inference_mode():
            for t in range(STEPS):
                frames[t] = seen
                inputs, _, _ = self.policy.act(torch.from_numpy(seen), {})
                actions = torch.multinomial(inputs.softmax(-1), 1)[:, 0].numpy()
                seen, *_ = self.env.step(actions)
        return frames.reshape(-1, *seen.shape[1:])


class Whole:
    """The algorithm, with memories that are full and prototypes that pay."""

    def __init__(self) -> None:
        start_ray(cpus=1)
        self.algorithm = build(config(), conspec=True)
        learner = self.algorithm.learner_group._learner.reward_model.models["conspec"].learner
        for _ in range(8):
            won, *lost = random_episodes(4)
            learner.add([won, won], lost)
        learner.met[:] = True
        self.algorithm.train()  # brings the snapshot to the worker

    def iterate(self) -> int:
        shown = self.algorithm.train()
        print({k: round(float(v), 1) for k, v in shown["seconds"].items()}, flush=True)
        return int(shown["env_runners"]["num_env_steps_sampled"])


def main() -> None:
    sides = {"bare": Bare(), "whole": Whole()}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(TURNS):
        for name, side in sides.items():
            start = time.process_time()
            steps = side.iterate()
            rates[name].append(steps / (time.process_time() - start))
            print(f"  {name}: {rates[name][-1]:.0f} steps a CPU second", flush=True)
    median = {name: float(np.median(r)) for name, r in rates.items()}
    print(f"steps_per_second: {median['whole']:.0f}")
    print(f"share: {median['whole'] / median['bare']:.2f}")


if __name__ == "__main__":
    main()
