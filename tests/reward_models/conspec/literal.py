"""ConSpec's formulas one by one, with a Python loop for every index: slow, and checked by eye.

Prototypes are i, episodes k, steps t. Only the encoder f_W is taken from the model, and it sees one
frame at a time. Nothing here is padded, batched, de-duplicated or pruned. Give it a model in double
precision.

Where the paper and the authors' code differ, `form` says whose formula it is:

    form    projection   ReLU after layer   D             repeats      who pays
    paper   one for all  1                  once          paid         all, once they learn
    code    one each     1 and 2            once per i    taken away   those that met the criterion
    mixed   one each     1                  once          taken away   those that met the criterion
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.conspec.prototypes import Prototypes

Episodes = Sequence[Episode]


# --- scores -----------------------------------------------------------------------------------


def score(model: Prototypes, options: ConSpecOptions, i: int, z: Tensor) -> Tensor:
    """s = cos(h_i, g_θ(z)) for the features z of one frame."""
    own = 0 if options.form == "paper" else i
    projected = torch.relu(z @ model.layer1[own]) @ model.layer2[own]
    if options.form == "code":
        projected = torch.relu(projected)
    return cosine(model.vectors[i], projected)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Normalised dot product; a vector without length has no direction, so its cosine is 0."""
    if not a.detach().any() or not b.detach().any():
        return a.new_zeros(())
    return (a * b).sum() / (a.norm() * b.norm())


def episode_scores(
    model: Prototypes, options: ConSpecOptions, episode: Episode
) -> list[list[Tensor]]:
    """s[i][t] of every prototype and every step of one episode."""
    z = [model.encoder(torch.tensor(frame)[None])[0] for frame in episode.frames]
    return [
        [score(model, options, i, z[t]) for t in range(len(z))] for i in range(len(model.vectors))
    ]


def best_match(scores: list[Tensor], top_k: int) -> Tensor:
    """The mean of the k highest scores, or of all when there are fewer; k = 1 is max_t."""
    highest = sorted(scores, key=Tensor.item, reverse=True)[:top_k]
    return sum(highest) / len(highest)


# --- loss -------------------------------------------------------------------------------------


def match_times(scores: list[Tensor], scale: float) -> list[Tensor]:
    """p_ik = softmax_t(scale · s_ikt)."""
    highest = max(s.item() for s in scores)
    powers = [torch.exp(scale * (s - highest)) for s in scores]
    return [power / sum(powers) for power in powers]


def spread(p: list[Tensor], window: int) -> list[Tensor]:
    """Σ_{|u − t| ≤ window} p_u for every step t of one episode."""
    steps = range(len(p))
    return [sum(p[u] for u in steps if abs(u - t) <= window) for t in steps]


def cosine_diversity(p: list[list[Tensor]]) -> Tensor:
    """D = Σ_{i≠j} |cos(p_i, p_j)| of one episode, p[i][t]."""
    total = p[0][0].new_zeros(())
    for i in range(len(p)):
        for j in range(len(p)):
            if i != j:
                total = total + cosine(torch.stack(p[i]), torch.stack(p[j])).abs()
    return total


def entropy_diversity(p: list[list[Tensor]]) -> Tensor:
    """D = −Entropy(L1-normalised Σ_i p_i) of one episode, p[i][t]."""
    steps = range(len(p[0]))
    summed = [sum(p[i][t] for i in range(len(p))) for t in steps]
    normalised = [x / sum(summed) for x in summed]
    entropy = -sum(q * torch.log(q) for q in normalised)
    return -entropy


@dataclass
class Parts:
    """The three terms of eqn 1, and every prototype's best match in each of its own episodes."""

    success: Tensor
    failure: Tensor
    diversity: Tensor
    success_best: dict[int, list[Tensor]]
    failure_best: dict[int, list[Tensor]]

    @property
    def total(self) -> Tensor:
        return self.success + self.failure + self.diversity


def loss(
    model: Prototypes,
    options: ConSpecOptions,
    active: int,
    live: tuple[Episodes, Episodes],
    exemplars: Mapping[int, tuple[Episodes, Episodes]],
    softmax_scale: float = 100.0,
) -> Parts:
    """Eqn 1 with H = `active`: a prototype without exemplars looks at the live episodes."""
    own = {i: exemplars.get(i, live) for i in range(active)}
    everything = {id(e): e for sets in (live, *own.values()) for group in sets for e in group}
    s = {key: episode_scores(model, options, e) for key, e in everything.items()}
    success = failure = diversity = model.vectors.new_zeros(())
    success_best, failure_best = {}, {}
    for i, (won, lost) in own.items():
        success_best[i] = [best_match(s[id(e)][i], options.top_k) for e in won]
        failure_best[i] = [best_match(s[id(e)][i], options.top_k) for e in lost]
        success = success + sum((1 - b).abs() for b in success_best[i]) / len(won)
        failure = failure + sum(b.abs() for b in failure_best[i]) / len(failure_best[i])

    # (α/H) Σ_{k∈S} D_k on the live successes; in the code, the same once for every i on its S_i.
    moved = [options.diversity_moves == "all" or i not in exemplars for i in range(active)]
    sets = [won for won, _ in own.values()] if options.form == "code" else [live[0]]
    for successes in sets:
        for episode in successes:
            p = []
            for i in range(active):
                row = s[id(episode)][i]
                row = row if moved[i] else [x.detach() for x in row]
                times = match_times(row, softmax_scale)
                p.append(spread(times, options.diversity_window))
            d = cosine_diversity(p) if options.diversity == "cosine" else entropy_diversity(p)
            diversity = diversity + options.diversity_coeff / active * d
    return Parts(success, failure, diversity, success_best, failure_best)


def meets_criterion(
    success_best: list[Tensor], failure_best: list[Tensor], threshold: float
) -> bool:
    """mean_S max − mean_F max > 𝒯 and mean_S max > 𝒯."""
    won = sum(b.item() for b in success_best) / len(success_best)
    lost = sum(b.item() for b in failure_best) / len(failure_best)
    return won - lost > threshold and won > threshold


# --- intrinsic reward: s[i][t] plain numbers of one episode --------------------------------------


def window_reward(
    s: list[list[float]], scale: float, threshold: float, window: int, remove_repeats: bool
) -> list[float]:
    """λ·Σ_i ŝ_it where ŝ_it is the maximum of ŝ_i,t−w..t+w, then without repeats: less 1, ½ and ¼
    of what it was one, two and three steps before, but never below 0.
    """
    steps = range(len(s[0]))
    reward = [0.0 for _ in steps]
    for row in s:
        hat = [x if x > threshold else 0.0 for x in row]
        paid = []
        for t in steps:
            neighbours = [hat[u] for u in steps if t - window <= u <= t + window]
            paid.append(hat[t] if hat[t] == max(neighbours) else 0.0)
        for t in steps:
            left = paid[t]
            if remove_repeats:
                for before, share in ((1, 1.0), (2, 0.5), (3, 0.25)):
                    if t - before >= 0:
                        left -= share * paid[t - before]
            reward[t] += scale * max(left, 0.0)
    return reward


def once_reward(s: list[list[float]], scale: float, threshold: float) -> list[float]:
    """λ·Σ_i ŝ_it at the first step t where ŝ_i is at its highest, 0 at all others."""
    reward = [0.0 for _ in s[0]]
    for row in s:
        hat = [x if x > threshold else 0.0 for x in row]
        reward[hat.index(max(hat))] += scale * max(hat)
    return reward


def potential_reward(
    s: list[list[float]], scale: float, threshold: float, gamma: float
) -> list[float]:
    """λ·Σ_i (γ ŝ_it − ŝ_i,t−1), with ŝ_i,−1 = 0."""
    reward = []
    for t in range(len(s[0])):
        total = 0.0
        for row in s:
            hat = [x if x > threshold else 0.0 for x in row]
            total += gamma * hat[t] - (hat[t - 1] if t > 0 else 0.0)
        reward.append(scale * total)
    return reward


def intrinsic_reward(
    model: Prototypes,
    options: ConSpecOptions,
    pays: Sequence[int],
    episode: Episode,
    gamma: float,
) -> list[float]:
    """What the prototypes `pays` pay for every step of an episode."""
    if not pays:
        return [0.0] * len(episode)
    with torch.no_grad():
        all_scores = episode_scores(model, options, episode)
    s = [[float(x) for x in all_scores[i]] for i in pays]
    scale = options.intrinsic_coeff
    if options.intrinsic == "potential":
        return potential_reward(s, scale, options.threshold, gamma)
    if options.pay_once:
        return once_reward(s, scale, options.threshold)
    return window_reward(s, scale, options.threshold, options.window, options.form != "paper")
