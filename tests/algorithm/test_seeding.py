"""Seeds that depend on where training stands and on nothing else."""

import random

import numpy as np
import torch

from rllib_conspec.algorithm.seeding import derived_seed, seed_everything


def test_equal_positions_have_equal_seeds_and_others_do_not():
    places = [
        (seed, purpose, worker, iteration)
        for seed in (0, 1, 2)
        for purpose in ("rollout", "learner")
        for worker in (0, 1, 2)
        for iteration in (0, 1, 2)
    ]
    seeds = [derived_seed(*place) for place in places]
    assert seeds == [derived_seed(*place) for place in places]
    assert len(set(seeds)) == len(places)


def test_neighbouring_iterations_and_workers_never_share_a_seed():
    seeds = {derived_seed(0, "rollout", w, i) for w in range(1, 9) for i in range(500)}
    assert len(seeds) > 8 * 500 - 3  # 31 bits: a rare collision is chance


def test_seeds_fit_every_generator():
    for i in range(200):
        seed = derived_seed(5, "rollout", i)
        assert 0 <= seed < 2**31
        np.random.RandomState(seed)
        torch.Generator().manual_seed(seed)


def test_no_seed_stays_no_seed():
    assert derived_seed(None, "rollout", 1) is None
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    seed_everything(None)
    assert torch.rand(1) == expected


def test_all_global_generators_are_seeded():
    def draws():
        return random.random(), np.random.rand(), float(torch.rand(1))  # noqa: NPY002

    seed_everything(7)
    first = draws()
    assert draws() != first
    seed_everything(7)
    assert draws() == first
