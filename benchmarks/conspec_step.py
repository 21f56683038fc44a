"""The ConSpec step against the literal loop over prototypes, at the paper's sizes.

4 keys, H = 8, projections 1010 wide, 32 episodes. The literal loop does what the formula says: for
every prototype it encodes all frames of its episodes and scores them with all prototypes, and every
frame goes through the backward pass. Both are timed in this one run, on one core, and must give the
same gradient. Times are the process's own CPU seconds: what else the machine does hardly matters.

Takes about 10 minutes. Expect `speedup:` of 25 or more, `gradient_difference:` below 1e-4 of the
largest gradient, and exponents of at most about 1 (linear).
"""

from __future__ import annotations

import time

import numpy as np
import torch
from episodes import lengthened, random_episodes

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec import loss as L
from rllib_conspec.reward_models.conspec.contrast import contrastive_loss
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes
from rllib_conspec.reward_models.conspec.view import Contrast, View

SHAPE = (5, 5, 3)


def literal_gradients(
    model: Prototypes, options: ConSpecOptions, won: list[Episode], lost: list[Episode]
) -> list[torch.Tensor]:
    """Gradients of eqn 1, prototype by prototype, nothing shared and nothing left out."""
    model.zero_grad()
    everyone = torch.arange(options.num_prototypes)
    for i in range(options.num_prototypes):
        best, diversity = {}, torch.zeros(())
        for name, episodes in (("won", won), ("lost", lost)):
            frames = torch.from_numpy(np.concatenate([e.frames for e in episodes]))
            s = model.scores(model.encode(frames), everyone).unflatten(1, (len(episodes), -1))
            mask = torch.ones(s.shape[1:], dtype=torch.bool)
            best[name] = L.best_match(s, mask)[i]
            if name == "won":
                p = L.match_times(s, mask, L.SOFTMAX_SCALE)
                # Once for every prototype, so each time a part of it.
                weight = options.diversity_coeff / options.num_prototypes**2
                diversity = weight * L.cosine_diversity(p).sum()
        loss = (1 - best["won"]).abs().mean() + best["lost"].abs().mean() + diversity
        loss.backward()
    return [p.grad.clone() for p in model.parameters()]


def our_gradients(
    model: Prototypes, options: ConSpecOptions, won: list[Episode], lost: list[Episode]
) -> list[torch.Tensor]:
    model.zero_grad()
    live = Contrast(tuple(range(options.num_prototypes)), tuple(won), tuple(lost))
    view = View(model, [live])
    contrastive_loss(view, options, options.num_prototypes, live, ()).total.backward()
    return [p.grad.clone() for p in model.parameters()]


def trained(options: ConSpecOptions, won, lost, steps: int = 8) -> Prototypes:
    """A model after a few steps: at first all scores are alike and every frame counts."""
    torch.manual_seed(0)
    model = Prototypes(options, SHAPE)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    for _ in range(steps):
        our_gradients(model, options, won, lost)
        optimizer.step()
    return model


def split(episodes: list[Episode]) -> tuple[list[Episode], list[Episode]]:
    return [e for e in episodes if e.success], [e for e in episodes if not e.success]


def seconds(function, *arguments, repeat: int = 3) -> float:
    """Best of a few runs: the machine's other work only ever adds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def exponent(sizes: list[float], times: list[float]) -> float:
    """Slope of log time against log size: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth(label: str, sizes: list[int], make) -> float:
    times = []
    for size in sizes:
        options, won, lost = make(size)
        model = trained(options, won, lost, steps=4)
        times.append(seconds(our_gradients, model, options, won, lost, repeat=2))
        print(f"  {label} = {size:4d}: {times[-1]:6.2f} s", flush=True)
    return exponent(sizes, times)


def main() -> None:
    torch.set_num_threads(1)
    options = ConSpecOptions()
    won, lost = split(random_episodes(keys=4, count=32))
    model = trained(options, won, lost)
    print("4 keys, H = 8, width 1010, 32 episodes of 245 steps", flush=True)
    ours = seconds(our_gradients, model, options, won, lost)
    print(f"  this package: {ours:.2f} s", flush=True)
    start = time.process_time()
    expected = literal_gradients(model, options, won, lost)
    literal = time.process_time() - start
    print(f"  literal loop: {literal:.2f} s", flush=True)
    found = our_gradients(model, options, won, lost)
    largest = max(float(g.abs().max()) for g in expected)
    difference = (
        max(float((a - b).abs().max()) for a, b in zip(expected, found, strict=True)) / largest
    )

    def with_prototypes(count: int):
        return ConSpecOptions(num_prototypes=count), *split(random_episodes(2, 32))

    def with_length(length: int):
        # From more episodes than are used, so that longer ones bring new frames.
        longer = lengthened(random_episodes(4, 128), length)
        return ConSpecOptions(), longer[:16], longer[-16:]

    by_prototypes = growth("H", [2, 8, 20, 40], with_prototypes)
    by_length = growth("T", [65, 125, 250, 500], with_length)
    print(f"seconds_per_step: {ours:.3f}")
    print(f"gradient_difference: {difference:.2e}")
    print(f"exponent_in_H: {by_prototypes:.2f}")
    print(f"exponent_in_T: {by_length:.2f}")
    print(f"speedup: {literal / ours:.1f}")


if __name__ == "__main__":
    main()
